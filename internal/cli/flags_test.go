// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/object"
)

func TestAnAddressOfAFileIsOneOfThisMachineAndAPort(t *testing.T) {
	for _, wrong := range []string{"", "8080", ":", ":0", ":70000", ":http", "a:b:1", "127.0.0.1"} {
		var a Answering
		if err := a.At(wrong); err == nil || !strings.Contains(err.Error(), "want an address and a port") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	var a Answering
	a.Flags(pflag.NewFlagSet("test", pflag.ContinueOnError), 0)
	listening := func() int {
		t.Helper()
		options, err := a.Options(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return len(options)
	}
	if n := listening(); n != 0 {
		t.Errorf("%d listeners, and nobody asked for one", n)
	}
	// A port that was asked for and is taken is an error, by default or not.
	l, err := listen(t.Context(), "127.0.0.1", 0, Sharing{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := a.At(l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Options(t.Context(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("two listen at one port")
	}
}

func TestWhoHoldsNoLeaseNeedsNoName(t *testing.T) {
	var e Electing
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	e.Flags(flags, LeaseDefaults{Processes: "tests"})
	if options, err := e.Options(); err != nil || len(options) != 0 {
		t.Errorf("%d options, %v", len(options), err)
	}
	e.On()
	if _, err := e.Options(); err == nil {
		t.Error("a lease without a name")
	}
	e.By(object.Key{Namespace: "a", Name: "b"})
	if options, err := e.Options(); err != nil || len(options) != 1 {
		t.Errorf("%d options, %v", len(options), err)
	}
}

func TestTheStatusIsTheCommandsOwnAndErrorsAreSaidBehindItsName(t *testing.T) {
	for _, test := range []struct {
		args   []string
		status int
		said   string
	}{
		{nil, 0, ""},
		{[]string{"--own"}, 42, ""},
		{[]string{"--onw"}, 1, "a test: there is no flag --onw; did you mean --own?\n"},
		{[]string{"-o"}, 1, "a test: there is no flag -o; did you mean --own?\n"},
		{[]string{"-x"}, 1, "a test: there is no flag -x\n"},
		{[]string{"--old"}, 1, "a test: --old is of another time\n"},
		{[]string{"--own=perhaps"}, 1, "a test: --own=perhaps: want true or false\n"},
	} {
		var said bytes.Buffer
		var own bool
		c := &cobra.Command{Use: "test", RunE: func(*cobra.Command, []string) error {
			if own {
				return StatusError(42)
			}
			return nil
		}}
		c.Flags().BoolVar(&own, "own", false, "")
		ExplainFlagErrors(c, func(name string) (string, bool) { return "is of another time", name == "old" })
		w := &World{Stdout: &said, Stderr: &said}
		args := append([]string{}, test.args...) // none are not those of this process
		if status := w.Run(context.Background(), c, "a test", args); status != test.status || said.String() != test.said {
			t.Errorf("%q: status %d, %q", test.args, status, said.String())
		}
	}
}
