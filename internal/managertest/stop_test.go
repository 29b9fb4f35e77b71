// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// failing is a test that keeps why it failed and what it wrote.
type failing struct {
	testing.TB
	because string
	output  bytes.Buffer
}

func (f *failing) Helper()           {}
func (f *failing) Output() io.Writer { return &f.output }
func (f *failing) Fatalf(format string, args ...any) {
	f.because = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAManagerThatDoesNotEndFailsTheTestByItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		p := &Process{t: f, parts: []string{"deployment", "replicaset"}, stop: func() {}, ended: make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Stop()
		}()
		<-done
		if want := "the manager of deployment, replicaset has not ended within 2m0s"; f.because != want {
			t.Errorf("it failed with %q, want %q", f.because, want)
		}
		if !strings.Contains(f.output.String(), "goroutine profile") {
			t.Errorf("its output is %q, want all goroutines", &f.output)
		}
	})
}
