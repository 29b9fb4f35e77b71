module example.com/small/generate

go 1.26.0
