// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/setpoint-io/setpoint/object"
)

// How a name is made of a prefix, as the server makes one of a generateName.
// Source: k8s.io/apiserver/pkg/storage/names.
const (
	suffixLength = 5
	prefixMost   = 63 - suffixLength
)

// drawName returns a name that begins with prefix.
func drawName(prefix string) string {
	return prefix[:min(len(prefix), prefixMost)] + rand.String(suffixLength)
}

// names remembers the names under which Pods were to be created and, as far as is
// known, were not. A create that failed may have happened nevertheless, or may yet
// happen, when its answer was lost and a server that was stuck goes on. The next Pods
// of the same owner are created under these names, so that whatever becomes of the
// failed requests there is one Pod for each. The zero names is empty and safe for
// concurrent use.
type names struct {
	mu   sync.Mutex
	open map[object.Key]*openNames
}

// openNames are those of one owner.
type openNames struct {
	owner types.UID
	names map[string]bool
}

// take returns n names for Pods of an owner: first the open ones, then fresh ones.
// What is in use is left out; an open name that is in use is not open any more.
func (o *names) take(key object.Key, owner types.UID, n int, prefix string, used func(string) bool) []string {
	taken := o.stillOpen(key, owner, used)
	taken = taken[:min(n, len(taken))]
	seen := make(map[string]bool, n)
	for _, name := range taken {
		seen[name] = true
	}
	for len(taken) < n {
		if name := drawName(prefix); !seen[name] && !used(name) {
			seen[name] = true
			taken = append(taken, name)
		}
	}
	return taken
}

// stillOpen returns the open names of an owner in order, so that two runs that have
// room for some of them take the same.
func (o *names) stillOpen(key object.Key, owner types.UID, used func(string) bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.open[key]
	if known == nil || known.owner != owner {
		return nil
	}
	maps.DeleteFunc(known.names, func(name string, _ bool) bool { return used(name) })
	return slices.Sorted(maps.Keys(known.names))
}

// keepOpen notes that a Pod may or may not come to be under a name.
func (o *names) keepOpen(key object.Key, owner types.UID, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.open[key]
	if known == nil || known.owner != owner {
		known = &openNames{owner: owner, names: map[string]bool{}}
		if o.open == nil {
			o.open = map[object.Key]*openNames{}
		}
		o.open[key] = known
	}
	known.names[name] = true
}

// settle notes that it is known what became of a name.
func (o *names) settle(key object.Key, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.open[key]
	if known == nil {
		return
	}
	delete(known.names, name)
	if len(known.names) == 0 {
		delete(o.open, key)
	}
}

// forget drops the names of an owner that is gone.
func (o *names) forget(key object.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, key)
}
