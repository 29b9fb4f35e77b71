// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// place is what a DaemonSet needs to know of a node.
type place struct {
	fit
	name string
	uid  types.UID
	// unready is since when the node is not ready. It is the zero time if the node is ready.
	unready time.Time
}

// places are the nodes as one DaemonSet sees them. A node is compared with the template once after
// each of its changes: neither other nodes nor changes of Pods cost a comparison. It is safe for
// concurrent use.
type places struct {
	mu       sync.Mutex
	fitting  *fitting
	of       map[string]known
	compared int // how many nodes were compared with a template, for tests
}

// known is a place, and the version of the node that it was made of.
type known struct {
	place
	version object.Version
}

func newPlaces() *places { return &places{of: map[string]known{}} }

// refresh brings all places up to date with the informer's nodes, and returns them sorted by name.
func (p *places) refresh(nodes cache.SharedInformer[*corev1.Node], f *fitting) ([]place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The snapshot is of after the lock, so a place is never made of an older node than before.
	snapshot := nodes.Snapshot()
	if p.fitting == nil || !p.fitting.same(f) {
		clear(p.of)
	}
	p.fitting = f
	for name := range p.of {
		if !snapshot.Get(object.Key{Name: name}).Exists() {
			delete(p.of, name)
		}
	}
	all := make([]place, 0, snapshot.Len())
	for key, item := range snapshot.All() {
		is, found := p.of[key.Name]
		if !found || is.version != item.Meta().Version || is.uid != item.Meta().UID {
			var err error
			if is, err = p.compare(item); err != nil {
				return nil, err
			}
		}
		all = append(all, is.place)
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// note brings the place of one node up to date, and reports whether the node fits otherwise than
// before. Before the first refresh no place is known: the DaemonSet's first run is still to come.
func (p *places) note(nodes cache.SharedInformer[*corev1.Node], name string) (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fitting == nil {
		return false, nil
	}
	was, found := p.of[name]
	item := nodes.Snapshot().Get(object.Key{Name: name})
	if !item.Exists() {
		delete(p.of, name)
		return found && was.fit != fit{}, nil
	}
	is, err := p.compare(item)
	if err != nil {
		return false, err
	}
	return is.fit != was.fit || found && is.uid != was.uid, nil
}

// compare makes the place of a node.
func (p *places) compare(item cache.Item[*corev1.Node]) (known, error) {
	node, err := item.Object()
	if err != nil {
		return known{}, err
	}
	p.compared++
	is := known{place{p.fitting.of(node), node.Name, node.UID, unreadySince(node)}, item.Meta().Version}
	p.of[node.Name] = is
	return is, nil
}

// unreadySince returns since when a node is not ready, and the zero time if it is ready or does
// not say.
func unreadySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
