// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// reported remembers which objects have had their Event. A claim that 1,000 Pods hold is judged
// again at the end of each of them, and gets one Event. The zero value is empty. It is safe for
// concurrent use.
type reported struct {
	mu    sync.Mutex
	byKey map[object.Key]types.UID
}

// first notes an object, and reports whether it was not noted before. Another object of the
// name is a new one.
func (r *reported) first(o object.Object) bool {
	key := object.KeyOf(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if uid, known := r.byKey[key]; known && uid == o.GetUID() {
		return false
	}
	if r.byKey == nil {
		r.byKey = map[object.Key]types.UID{}
	}
	r.byKey[key] = o.GetUID()
	return true
}

// forget drops an object that is gone.
func (r *reported) forget(key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}
