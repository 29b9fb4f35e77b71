// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"regexp/syntax"
	"sync"
)

// mostPatterns is how many patterns are remembered. They are literals of conditions, which are few.
const mostPatterns = 100

// machines remembers how many states the machine of a pattern has, each of which may be in use at each letter of a text. The
// pattern a{1000} has seven letters and a thousand states.
type machines struct {
	mu     sync.Mutex
	states map[string]int
}

// size returns the number of states for a pattern, or the number of its letters if it is none.
func (m *machines) size(pattern string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, known := m.states[pattern]; known {
		return n
	}
	n := len(pattern)
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			n = len(program.Inst)
		}
	}
	if m.states == nil || len(m.states) >= mostPatterns {
		m.states = map[string]int{}
	}
	m.states[pattern] = n
	return n
}
