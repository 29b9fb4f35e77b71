module example.com/small/controlplane

go 1.26.0
