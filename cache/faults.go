// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Fault is an object whose newest state cannot be used, because the informer's transform
// fails for it. The cache keeps the last state that could be used, if there was one.
type Fault struct {
	Key     object.Key
	Version object.Version // of the state that cannot be used
	Err     error
	Since   time.Time
}

// fault is a Fault with the bytes of the state, to try it again.
type fault struct {
	Fault
	uid      types.UID
	encoding wire.Encoding
	raw      []byte
	said     bool // a line of the log names it
}

const (
	// faultsAgain is how often a transform is tried again with the states that it failed for.
	faultsAgain = 30 * time.Second
	// faultsShown is how many faults a Status has at most.
	faultsShown = 10
)

// faultOf makes a fault of a frame.
func (i *informer) faultOf(f *frame) *fault {
	key := object.Key{Namespace: string(f.head.Namespace), Name: string(f.head.Name)}
	n := &fault{
		Fault: Fault{Key: key, Version: object.Version(f.head.ResourceVersion), Err: f.fault, Since: time.Now()},
		uid:   types.UID(f.head.UID), encoding: f.encoding, raw: bytes.Clone(f.raw),
	}
	if before := i.faults[key]; before != nil {
		n.Since, n.said = before.Since, before.said
		return n
	}
	// One mistake in a transform may concern every object there is.
	i.faulted++
	if n.said = bits.OnesCount64(i.faulted) == 1; n.said {
		i.log.Error("an object cannot be used; the last state that could be is kept, and the transform is tried again",
			"kind", i.name, "object", key.String(), "version", string(n.Version), "error", f.fault, "times", i.faulted)
	}
	return n
}

// setFault sets the fault of an object, or removes it for nil. mu is held.
func (i *informer) setFault(namespace, name []byte, n *fault) {
	if n == nil && len(i.faults) == 0 {
		return // nearly always
	}
	key := object.Key{Namespace: string(namespace), Name: string(name)}
	if n != nil {
		i.faults[key] = n
		return
	}
	if before := i.faults[key]; before != nil && before.said {
		i.log.Error("an object that could not be used can be, or is gone", "kind", i.name, "object", key.String())
	}
	delete(i.faults, key)
}

// putFaulty is put for an object that cannot be used. If the store has another object of that
// name, with another UID, that object no longer exists.
func (i *informer) putFaulty(f *frame, version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.setFault(f.head.Namespace, f.head.Name, i.faultOf(f))
	edit := i.store.begin()
	var gone *entry
	if known := edit.get(f.head.Namespace, f.head.Name); known != nil && !known.identified(f.head.UID) {
		gone = edit.remove(f.head.Namespace, f.head.Name)
		i.archive.drop(gone)
	}
	edit.commit(version)
	i.content.release(gone)
	if gone != nil {
		i.notify(delta{key: gone.key(), old: gone, last: gone, stale: true})
	}
	i.seen(version)
}

// addFaulty is add for an object that cannot be used.
func (i *informer) addFaulty(f *frame) {
	i.mu.Lock()
	n := i.faultOf(f)
	i.mu.Unlock()
	i.relist.faults[n.Key] = n
	if known := i.store.current.Load().at(n.Key); known != nil && known.identity() == n.uid {
		known.mark(i.relist.number)
	}
}

// retryFaults tries the transform again from time to time until ctx ends: a transform may
// depend on more than the object.
func (i *informer) retryFaults(ctx context.Context) {
	ticker := time.NewTicker(faultsAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		i.mu.Lock()
		all := slices.Collect(maps.Values(i.faults))
		i.mu.Unlock()
		for _, n := range all {
			if ctx.Err() == nil {
				i.retryFault(n)
			}
		}
	}
}

// retryFault stores the state of a fault if it can be used now.
func (i *informer) retryFault(before *fault) {
	var f frame
	if err := i.again(&f, before.encoding, before.raw); err != nil || f.fault != nil {
		return
	}
	i.writing.Lock()
	defer i.writing.Unlock()
	i.flushLocked()
	i.mu.Lock()
	current := i.faults[before.Key] == before && !i.relist.open
	i.mu.Unlock()
	if !current {
		return // a newer state has come, or a relist brings one
	}
	n, err := i.archive.entry(&f)
	if err != nil {
		return
	}
	i.batch.add(change{entry: n, version: i.store.current.Load().version})
	i.flushLocked()
}

// shownFaults returns the first of the objects that cannot be used, by key, and how many there
// are.
func (i *informer) shownFaults() (some []Fault, all int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range i.faults {
		some = append(some, n.Fault)
	}
	slices.SortFunc(some, func(a, b Fault) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return some[:min(len(some), faultsShown)], len(some)
}

// faultsError returns the trouble of an informer with objects that cannot be used, or nil.
func (i *informer) faultsError() error {
	some, all := i.shownFaults()
	if all == 0 {
		return nil
	}
	err := fmt.Errorf("%s at version %s: %w", some[0].Key, some[0].Version, some[0].Err)
	if all > 1 {
		err = fmt.Errorf("%w (and %d more objects)", err, all-1)
	}
	return &undecodable{err}
}
