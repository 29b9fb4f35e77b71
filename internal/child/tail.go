// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// maxTail is how much of the child's standard error is remembered, in bytes: an
// error with what led to it, not a whole log.
const maxTail = 4 << 10

// tail passes on what is written and remembers the last of it.
type tail struct {
	next io.Writer // may be nil

	mu   sync.Mutex
	last []byte
}

// Write never fails: a reader that went away is no reason to block the child.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if over := len(t.last) - maxTail; over > 0 {
		t.last = bytes.Clone(t.last[over:])
	}
	if t.next != nil {
		_, _ = t.next.Write(b)
	}
	return len(b), nil
}

// text is what is remembered, without a first line that was cut.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := string(t.last)
	if len(t.last) == maxTail {
		if _, whole, found := strings.Cut(last, "\n"); found {
			last = whole
		}
	}
	return strings.TrimSpace(last)
}
