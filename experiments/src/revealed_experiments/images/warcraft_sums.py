"""MD5 sums of the original Warcraft map files, by the number of cells on a side.

They are those that public loaders of the archive check (`warcraft_maps.tar`, MD5
2b8c21192ee3b40b85c090bccbacbf2c); we have not had the archive itself in hand.
"""

PUBLISHED: dict[int, dict[str, str]] = {
    12: {
        "train_maps.npy": "c31760c5fbd9d034b6e21a6612895e69",
        "train_vertex_weights.npy": "761cc8098730504335efdefec3b221a6",
        "train_shortest_paths.npy": "1483015985796f3bf9f3e5e00cb8e855",
        "val_maps.npy": "cfe9288a537d46be48c0c287885f8405",
        "val_vertex_weights.npy": "452753f9d8b31ac03bbd532953974072",
        "val_shortest_paths.npy": "95e81a2a3263d6520fa5f07a8701c74a",
        "test_maps.npy": "a5c50ae11e4bd01cb1a2cd76e5849b22",
        "test_vertex_weights.npy": "071dbcf2aa9d98fc255abdcb780151b1",
        "test_shortest_paths.npy": "deae60b10d932e2a37271df4b44e295d",
    },
    18: {
        "train_maps_part0.npy": "d9eaeb9951ddeb1b9d81b032306d148e",
        "train_vertex_weights_part0.npy": "66615d8587395308fba7198be2d16668",
        "train_shortest_paths_part0.npy": "cb2fd24b504181babd54fe353ffba105",
        "train_maps_part1.npy": "9ff1262e9226ff0762c0cb7d71144045",
        "train_vertex_weights_part1.npy": "8f704f96a18858341778ba15140a3795",
        "train_shortest_paths_part1.npy": "1888a1a6e1a66ca86e4c13fc4d4fe2a7",
        "val_maps.npy": "c2c43f7403d6b6abaf85faea58cc236e",
        "val_vertex_weights.npy": "65c572b192df397f38f6c904e30dc20d",
        "val_shortest_paths.npy": "876776c6aa4c921fa3d6447b3e3c429b",
        "test_maps.npy": "63036efd86f05e493c19ab7e34acb7a6",
        "test_vertex_weights.npy": "098b700dcce2d43bd540f5d39080912d",
        "test_shortest_paths.npy": "bedb89c7ee1228d0eec106cc3176a5a5",
    },
    24: {
        "train_maps_part0.npy": "a2ffbdf71277d12d56d1da587dc27190",
        "train_vertex_weights_part0.npy": "dbfd6ff704ab5ae08f78a59cc735d6d8",
        "train_shortest_paths_part0.npy": "c50b80dcdf59b461bcc087e5f8eebb9d",
        "train_maps_part1.npy": "d15da5246238b335553f1b95c7a4e1a6",
        "train_vertex_weights_part1.npy": "6492d52529dda88b2ff9052c868c6595",
        "train_shortest_paths_part1.npy": "da4c038e3c3b4ffedeb7fa7ece691fa0",
        "val_maps.npy": "6976d7b4695ff7348bf5f5bc23691252",
        "val_vertex_weights.npy": "8944da86c5645f6bda3a362364973ff5",
        "val_shortest_paths.npy": "b44024d447e489b6721c167e29d4d741",
        "test_maps.npy": "3a2fb8129953387ff33c7d4e4bfeaf1c",
        "test_vertex_weights.npy": "ad66ba7de2164f29822c993a68a7a4e5",
        "test_shortest_paths.npy": "a81d4d57921f6be1c73887fce9a80c24",
    },
    30: {
        "train_maps_part0.npy": "4c507a4a4c7380f92f9577cfc411f8c7",
        "train_vertex_weights_part0.npy": "2f23dee77881d4528e390cb23ca5cf2f",
        "train_shortest_paths_part0.npy": "276cc3236b9ce88acf1892b2c9dd8bb1",
        "train_maps_part1.npy": "cc07844ec3f0c96c68438b1f96272708",
        "train_vertex_weights_part1.npy": "a5cdf37b41879842b41c789f23716c92",
        "train_shortest_paths_part1.npy": "dc82298bf4cf1ccfa21f539369395c02",
        "val_maps.npy": "bcdd89c044f11f88f4033156670dff73",
        "val_vertex_weights.npy": "a99d5d0963c6243b5b3c2e3baa8239ac",
        "val_shortest_paths.npy": "934943c8513bb381ef4ac952cb82f04a",
        "test_maps.npy": "3b284423419a2319b9f2179b3005a696",
        "test_vertex_weights.npy": "1e695c96c34667adb905933fe74a9769",
        "test_shortest_paths.npy": "59a3fd2eff5ec3baba2591820019b51c",
    },
}
