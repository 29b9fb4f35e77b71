package rest

import _ "k8s.io/client-go/util/workqueue"

func InClusterConfig() {}
