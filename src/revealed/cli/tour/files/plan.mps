NAME          BAKERY
ROWS
 N  cost
 E  order_market
 E  order_station
 E  order_school
 E  order_hill
 E  order_bridge
 E  order_park
 E  order_mill
 E  order_square
 L  stock_north
 L  stock_south
 L  stock_harbour
COLUMNS
    north_market  order_market  1  stock_north  1
    north_station  order_station  1  stock_north  1
    north_school  order_school  1  stock_north  1
    north_hill  order_hill  1  stock_north  1
    north_bridge  order_bridge  1  stock_north  1
    north_park  order_park  1  stock_north  1
    north_mill  order_mill  1  stock_north  1
    north_square  order_square  1  stock_north  1
    south_market  order_market  1  stock_south  1
    south_station  order_station  1  stock_south  1
    south_school  order_school  1  stock_south  1
    south_hill  order_hill  1  stock_south  1
    south_bridge  order_bridge  1  stock_south  1
    south_park  order_park  1  stock_south  1
    south_mill  order_mill  1  stock_south  1
    south_square  order_square  1  stock_south  1
    harbour_market  order_market  1  stock_harbour  1
    harbour_station  order_station  1  stock_harbour  1
    harbour_school  order_school  1  stock_harbour  1
    harbour_hill  order_hill  1  stock_harbour  1
    harbour_bridge  order_bridge  1  stock_harbour  1
    harbour_park  order_park  1  stock_harbour  1
    harbour_mill  order_mill  1  stock_harbour  1
    harbour_square  order_square  1  stock_harbour  1
RHS
    RHS  order_market  21
    RHS  order_station  17
    RHS  order_school  9
    RHS  order_hill  14
    RHS  order_bridge  23
    RHS  order_park  11
    RHS  order_mill  19
    RHS  order_square  16
    RHS  stock_north  50
    RHS  stock_south  60
    RHS  stock_harbour  55
ENDATA
