// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"maps"
	"sync"
)

// underWay are the writes that have begun and are not noted yet. What a write did can be
// seen in the server before its answer has come back: a test that has seen it and then
// calls Writes must find it among them.
type underWay struct {
	mu  sync.Mutex
	all map[chan struct{}]bool
}

// begin is called before a write is sent, and what it returns once it is noted.
func (u *underWay) begin() (end func()) {
	ended := make(chan struct{})
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[chan struct{}]bool{}
	}
	u.all[ended] = true
	return func() {
		close(ended)
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.all, ended)
	}
}

// wait returns when all that had begun before have ended. It does not wait for those
// that begin in the meantime, of which there may be no end.
func (u *underWay) wait() {
	u.mu.Lock()
	begun := maps.Clone(u.all)
	u.mu.Unlock()
	for ended := range begun {
		<-ended
	}
}
