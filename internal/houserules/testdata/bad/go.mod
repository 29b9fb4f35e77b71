module example.org/bad

go 1.26.0

require (
	k8s.io/client-go v0.0.0
	k8s.io/kubernetes v0.0.0
)

replace k8s.io/client-go => ./fake/client-go

replace k8s.io/kubernetes => ./fake/kubernetes

exclude k8s.io/kubernetes v1.0.0
