// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
)

// A short pattern with a counter has a state for each time.
func TestAShortPatternWithACounterIsExpensive(t *testing.T) {
	e := &event.Event{Verb: event.Updated, New: map[string]any{"text": strings.Repeat("a", 1<<20), "short": "web-1"}}
	for expr, refused := range map[string]bool{
		`new.text.matches("a{1000}b")`:           true,
		`new.text.matches("[ab]{1000}c")`:        true,
		`new.short.matches("^[a-z0-9-]{1,63}$")`: false,
		`new.short.matches("a{1000}b")`:          false,
		`new.text.matches("ab")`:                 false,
	} {
		c, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Matches(e); errors.Is(err, ErrCost) != refused {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

func TestPatternsThatAreRememberedAreFew(t *testing.T) {
	var m machines
	for n := range 3 * mostPatterns {
		if size := m.size(fmt.Sprintf("a{%d}", n+1)); size < n+1 {
			t.Fatalf("a{%d} has %d states", n+1, size)
		}
	}
	if len(m.states) > mostPatterns {
		t.Errorf("%d patterns are remembered", len(m.states))
	}
}
