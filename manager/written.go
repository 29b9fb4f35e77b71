// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// written knows the newest version of each kind that the controllers of this process have
// made. A leader that releases the lease passes them to the next one, which begins within
// milliseconds and must not act on a state from before the last writes. After a crash the
// lease has to expire first, and informers have seen the writes by then.
type written struct {
	server string // of the informers: versions of another one mean nothing to them

	mu     sync.Mutex
	newest map[string]object.Version // by Kind.group
}

// Record implements client.Recorder.
func (w *written) Record(write client.Write) {
	if write.Version.IsZero() || write.Client != nil && write.Client.Server() != w.server {
		return
	}
	kind := schema.GroupKind{Group: write.Resource.Group, Kind: write.Resource.Kind}.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest == nil {
		w.newest = map[string]object.Version{}
	}
	if !w.newest[kind].AtLeast(write.Version) {
		w.newest[kind] = write.Version
	}
}

// String is the word for the next holder.
func (w *written) String() string {
	w.mu.Lock()
	newest := maps.Clone(w.newest)
	w.mu.Unlock()
	text, err := json.Marshal(newest)
	if err != nil || len(newest) == 0 {
		return ""
	}
	return string(text)
}

// catchUpMost is how long a new leader waits for its informers to see the last writes of
// the one before. They need milliseconds; one that selects objects may never see a write
// of another object.
const catchUpMost = 300 * time.Millisecond

// catchUp waits until informers have seen what the holder before wrote.
func (m *Manager) catchUp(ctx context.Context, word string) {
	if word == "" {
		return
	}
	var newest map[string]object.Version
	if err := json.Unmarshal([]byte(word), &newest); err != nil {
		m.log.Warn("what the last holder of the lease left cannot be understood", "error", err)
		return
	}
	maps.DeleteFunc(newest, func(_ string, v object.Version) bool { // any writer of the Lease may have written it
		_, err := object.ParseVersion(string(v))
		return err != nil
	})
	m.before.Store(&newest)
	ctx, cancel := context.WithTimeout(ctx, catchUpMost)
	defer cancel()
	for _, l := range m.loops() {
		if m.catchUpLoop(ctx, l); ctx.Err() != nil {
			return
		}
	}
}

// catchUpLoop waits until the informers of a loop have seen it.
func (m *Manager) catchUpLoop(ctx context.Context, l controller.Loop) {
	newest := m.before.Load()
	if newest == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpMost)
	defer cancel()
	for _, informer := range l.Informers() {
		group, kind := informer.GroupKind()
		version, ok := (*newest)[schema.GroupKind{Group: group, Kind: kind}.String()]
		if !ok {
			continue
		}
		seen, giveUp := informer.Observed(version)
		select {
		case <-seen:
			continue
		default:
		}
		select {
		case <-seen:
		case <-ctx.Done():
			giveUp()
			m.log.Warn("an informer has not seen the last writes of the leader before; starting all the same",
				"controller", l.Name(), "kind", informer.Kind(), "version", version)
			return
		}
	}
}
