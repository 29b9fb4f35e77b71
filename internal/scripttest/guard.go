// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	// lastWords is how long the processes of a script that is late may take to say where
	// they are. A Go program does so on SIGQUIT.
	lastWords = 2 * time.Second

	// stragglerGrace is how long a process may go on after its script. A process that was
	// killed needs a moment until it is gone.
	stragglerGrace = 5 * time.Second

	pollInterval = 10 * time.Millisecond
)

// Guard fails a script that has not ended after a time, or that leaves processes behind.
// Both are killed, and the failure names them. Guard is called by the Setup of a script.
//
// The processes of a script are those with its folder in their environment, as $WORK. They
// are found on systems with /proc.
func Guard(e *testscript.Env, limit time.Duration) {
	variable := "WORK=" + e.WorkDir
	var late []process
	ended := make(chan struct{})
	timer := time.AfterFunc(limit, func() {
		defer close(ended)
		late = kill(variable)
	})
	e.Defer(func() {
		if !timer.Stop() {
			<-ended
			e.T().Fatal("the script did not end within", limit, "and was ended; its processes were\n"+describe(late))
		}
		if left := stragglers(variable); len(left) > 0 {
			e.T().Fatal("the script has ended, and these of its processes had not and were killed:\n" + describe(left))
		}
	})
}

// stragglers kills the processes that do not end with their script, and returns them.
func stragglers(variable string) []process {
	if gone(variable, stragglerGrace) {
		return nil
	}
	return kill(variable)
}

// kill ends all processes with a variable, and returns them.
func kill(variable string) []process {
	all := processes(variable)
	signal(all, syscall.SIGQUIT)
	if gone(variable, lastWords) {
		return all
	}
	for _, p := range processes(variable) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for end := time.Now().Add(stragglerGrace); !gone(variable, pollInterval) && time.Now().Before(end); {
		signal(processes(variable), syscall.SIGKILL) // there may be new ones
	}
	return all
}

func signal(all []process, s syscall.Signal) {
	for _, p := range all {
		_ = syscall.Kill(p.id, s) // an error means that it has ended
	}
}

// gone waits until no process has a variable, and reports whether it is so.
func gone(variable string, limit time.Duration) bool {
	for end := time.Now().Add(limit); len(processes(variable)) > 0; time.Sleep(pollInterval) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func describe(all []process) string {
	lines := make([]string, len(all))
	for i, p := range all {
		lines[i] = "  " + p.String()
	}
	return strings.Join(lines, "\n")
}
