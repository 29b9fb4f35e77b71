// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// logged has the log of all caches of the tests. controller-runtime takes one logger in the life of a process, so it
// is set before the first test.
var logged = func() *logLines {
	l := &logLines{}
	crlog.SetLogger(funcr.New(l.add, funcr.Options{}))
	return l
}()

// logLines keeps the lines of a log while a test wants them.
type logLines struct {
	mu    sync.Mutex
	want  bool
	lines []string
}

func (l *logLines) add(prefix, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.want {
		l.lines = append(l.lines, prefix+" "+line)
	}
}

// keep keeps the lines until the test ends.
func (l *logLines) keep(t *testing.T) {
	set := func(want bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.want, l.lines = want, nil
	}
	set(true)
	t.Cleanup(func() { set(false) })
}

// has reports whether a line has all of the words.
func (l *logLines) has(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
	})
}

// String returns all lines.
func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
