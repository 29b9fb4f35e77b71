// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
)

// NewInformer makes an informer on the cache of Setpoint, for the field NewInformer of
// cache.Options. The cache around it is that of controller-runtime: the views of a kind share
// nothing.
//
// The ListerWatcher decodes each object, and the informer encodes it again to store it. So it saves
// memory and costs CPU time. [NewCache] stores what the server sent, and costs less of both.
func NewInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return clientgo.NewSharedIndexInformerWithOptions(lw, example, clientgo.Options{
		ResyncPeriod: resync, Indexers: indexers,
		KeepManagedFields: true, // programs may read them
	})
}
