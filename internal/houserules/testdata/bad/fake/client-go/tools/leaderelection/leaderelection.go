package leaderelection

import _ "k8s.io/client-go/tools/cache"
