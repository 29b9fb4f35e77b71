// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// part is a manager, as far as Run sees one.
type part func(context.Context) error

func (p part) Run(ctx context.Context) error { return p(ctx) }

// noted is a test whose errors and cleanups are noted.
type noted struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (n *noted) Helper() {}

func (n *noted) Errorf(format string, args ...any) {
	n.errors = append(n.errors, fmt.Sprintf(format, args...))
}

func (n *noted) Cleanup(f func()) { n.cleanups = append(n.cleanups, f) }

func TestRunRunsUntilTheTestEndsAndReportsWhatEndsBefore(t *testing.T) {
	for name, test := range map[string]struct {
		part part
		want string // in the only error; "" for none
	}{
		"runs until it is stopped": {func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, ""},
		"fails": {func(context.Context) error { return errors.New("no server") }, "running a setpointtest_test.part: no server"},
		"ends":  {func(context.Context) error { return nil }, "it ended before the test"},
		"fails to stop in order": {func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("a worker is stuck")
		}, "a worker is stuck"},
		"does not stop for a while": {func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			return nil
		}, "stopping a setpointtest_test.part: not done within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &noted{TB: t}
				setpointtest.Run(n, test.part)
				synctest.Wait()
				for _, cleanup := range n.cleanups {
					cleanup()
				}
				time.Sleep(time.Hour) // for the part that stops late
				if got := strings.Join(n.errors, "; "); test.want == "" && got != "" || !strings.Contains(got, test.want) || len(n.errors) > 1 {
					t.Errorf("errors %q, want %q", got, test.want)
				}
			})
		})
	}
}
