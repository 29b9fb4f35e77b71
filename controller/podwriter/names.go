// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/setpoint-io/setpoint/object"
)

// The server makes a name of a generateName in this form: the prefix, cut if it is too long,
// and five letters.
// Source: k8s.io/apiserver/pkg/storage/names.
const (
	suffixLength = 5
	prefixMost   = 63 - suffixLength
)

// drawName returns a name that begins with prefix.
func drawName(prefix string) string {
	return prefix[:min(len(prefix), prefixMost)] + rand.String(suffixLength)
}

// isMadeOf reports whether drawName may have returned a name for a prefix.
func isMadeOf(name, prefix string) bool {
	prefix = prefix[:min(len(prefix), prefixMost)]
	return len(name) == len(prefix)+suffixLength && strings.HasPrefix(name, prefix)
}

// dueTime is how long after its answer was lost a request may still be carried out.
// An API server gives a request up after a minute. The other half minute is for a request
// that had not reached the server yet. Source: k8s.io/apiserver/pkg/server, Config.RequestTimeout.
const dueTime = 90 * time.Second

// names remembers the names of creates that failed. If the answer was lost, the server may
// have carried the create out, or may do so later. The next Pods of the same owner are
// created under these names, so there is one Pod for each name, whatever becomes of the
// failed requests. The zero names is empty and safe for concurrent use.
type names struct {
	mu   sync.Mutex
	open map[object.Key]*openNames
}

// openNames are those of one owner.
type openNames struct {
	owner types.UID
	names map[string]openName
}

type openName struct {
	slot  string    // of the Pod that was to be made
	made  bool      // the server has answered that a Pod has this name
	until time.Time // a lost request may create a Pod under the name until then
}

// give returns Pods with names: those that have one as they are, and copies of the others,
// which get an open name of their slot that was made of their generateName, or else a fresh
// one. Names that are in use are left out.
func (o *names) give(owner Owner, wanted []*corev1.Pod, slot func(*corev1.Pod) string, now time.Time, used func(string) bool) []*corev1.Pod {
	open := o.stillOpen(owner.key(), owner.Object.GetUID(), now, used)
	seen := make(map[string]bool, len(wanted))
	named := make([]*corev1.Pod, len(wanted))
	for i, pod := range wanted {
		if pod.Name != "" {
			named[i] = pod
			continue
		}
		name := ""
		if at := slices.IndexFunc(open, func(free freeName) bool {
			return free.slot == slot(pod) && isMadeOf(free.name, pod.GenerateName)
		}); at >= 0 {
			name = open[at].name
			open = slices.Delete(open, at, at+1)
		}
		for name == "" || seen[name] || used(name) {
			name = drawName(pod.GenerateName)
		}
		seen[name] = true
		copied := *pod
		copied.Name = name
		named[i] = &copied
	}
	return named
}

// freeName is an open name that is not in use.
type freeName struct{ name, slot string }

// stillOpen returns the open names of an owner that are not in use, sorted, so that two runs
// that create fewer Pods use the same names. It forgets a name that is in use, or has been,
// once no lost request can create another Pod under it.
func (o *names) stillOpen(key object.Key, owner types.UID, now time.Time, used func(string) bool) []freeName {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.open[key]
	if known == nil || known.owner != owner {
		return nil
	}
	var free []freeName
	for name, state := range known.names {
		inUse := used(name)
		switch {
		case (inUse || state.made) && now.After(state.until):
			delete(known.names, name)
		case !inUse:
			free = append(free, freeName{name, state.slot})
		}
	}
	if len(known.names) == 0 {
		delete(o.open, key)
	}
	slices.SortFunc(free, func(a, b freeName) int { return strings.Compare(a.name, b.name) })
	return free
}

// keep notes that a create failed, or that its answer was lost. A lost request may create the
// Pod until then; the zero time says that it cannot.
func (o *names) keep(key object.Key, owner types.UID, name, slot string, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.open[key]
	if known == nil || known.owner != owner {
		known = &openNames{owner: owner, names: map[string]openName{}}
		if o.open == nil {
			o.open = map[object.Key]*openNames{}
		}
		o.open[key] = known
	}
	if before := known.names[name].until; before.After(until) {
		until = before
	}
	known.names[name] = openName{slot: slot, until: until}
}

// made notes that a Pod was created under a name, or that another owner's Pod has the name.
func (o *names) made(key object.Key, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.open[key]; known != nil {
		if state, ok := known.names[name]; ok {
			state.made = true
			known.names[name] = state
		}
	}
}

// forget drops the names of an owner that is gone.
func (o *names) forget(key object.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, key)
}
