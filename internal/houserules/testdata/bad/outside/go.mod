module example.com/bad/outside

go 1.26.0
