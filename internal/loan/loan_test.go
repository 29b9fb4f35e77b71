// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package loan_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/child"
	"github.com/setpoint-io/setpoint/internal/loan"
)

// planes are the control planes of a lender: shell scripts that are ready at once, and
// end with their standard input.
type planes struct {
	t       *testing.T
	path    string
	started chan *child.Process
	fail    error
	hang    bool
}

func (p *planes) start(ctx context.Context, _ loan.Kind) (*child.Process, error) {
	if p.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if p.fail != nil {
		return nil, p.fail
	}
	process, err := child.Start(ctx, child.Options{Path: p.path})
	if err == nil {
		p.started <- process
	}
	return process, err
}

func lend(t *testing.T) (*planes, *loan.Lender) {
	t.Helper()
	p := &planes{t: t, path: filepath.Join(t.TempDir(), "plane"), started: make(chan *child.Process, 20)}
	const script = "#!/bin/sh\n" + `echo '{"state":"ready","kubeconfig":"/k","servers":["https://a"],"elapsed":"2.0s"}'; exec cat >/dev/null`
	if err := os.WriteFile(p.path, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	l, err := loan.Listen(p.start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return p, l
}

func borrow(t *testing.T, l *loan.Lender, k loan.Kind) *loan.Loan {
	t.Helper()
	got, err := loan.Borrow(t.Context(), l.Address(), k)
	if err != nil {
		t.Fatal(err)
	}
	if got.Endpoints.Kubeconfig != "/k" || got.Pid == 0 {
		t.Errorf("borrowed %+v", got.Terms)
	}
	return got
}

// returned gives a control plane back, and waits until the lender has it.
func returned(t *testing.T, l *loan.Lender, k loan.Kind, b *loan.Loan) {
	t.Helper()
	if err := b.Return(); err != nil {
		t.Fatal(err)
	}
	// The lender reads the return some time after: a process that borrows meanwhile gets others.
	var others []*loan.Loan
	for {
		again := borrow(t, l, k)
		if again.Pid == b.Pid {
			if err := again.Return(); err != nil {
				t.Fatal(err)
			}
			break
		}
		others = append(others, again)
	}
	for _, other := range others {
		if err := other.Discard("of no use"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAControlPlaneThatIsReturnedIsLentAgain(t *testing.T) {
	_, l := lend(t)
	first := borrow(t, l, loan.Kind{Nodes: 3})
	returned(t, l, loan.Kind{Nodes: 3}, first)
}

func TestOneThatIsLentAndOneOfAnotherKindAreNotLent(t *testing.T) {
	_, l := lend(t)
	first := borrow(t, l, loan.Kind{Nodes: 3})
	if second := borrow(t, l, loan.Kind{Nodes: 3}); second.Pid == first.Pid {
		t.Error("one control plane was lent to two at the same time")
	}
	returned(t, l, loan.Kind{Nodes: 3}, first)
	for _, other := range []loan.Kind{{}, {Nodes: 3, State: "bare"}} {
		if got := borrow(t, l, other); got.Pid == first.Pid {
			t.Errorf("%+v was lent for %+v", loan.Kind{Nodes: 3}, other)
		}
	}
}

func TestOneThatIsDiscardedStopsAndTheAccountSaysWhy(t *testing.T) {
	p, l := lend(t)
	b := borrow(t, l, loan.Kind{})
	if err := b.Discard("a test deleted\nnode-0"); err != nil {
		t.Fatal(err)
	}
	<-(<-p.started).Done()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	a := l.Account()
	if a.Loans != 1 || a.Starts != 1 || len(a.Discarded) != 1 || a.Discarded[0] != "a test deleted node-0" {
		t.Errorf("the account is %+v", a)
	}
}

func TestTheErrorOfAStartReachesTheBorrower(t *testing.T) {
	p, l := lend(t)
	p.fail = errors.New("no port is free")
	_, err := loan.Borrow(t.Context(), l.Address(), loan.Kind{})
	if err == nil || !strings.Contains(err.Error(), "no port is free") {
		t.Errorf("%v, want that no port is free", err)
	}
	if _, err := loan.Borrow(t.Context(), filepath.Join(t.TempDir(), "none"), loan.Kind{}); err == nil || !strings.Contains(err.Error(), loan.Variable) {
		t.Errorf("%v, want that the variable is named", err)
	}
}

func TestAWaitForAControlPlaneEndsWithItsContext(t *testing.T) {
	p, l := lend(t)
	p.hang = true
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the test has ended")
	cancel(cause)
	if _, err := loan.Borrow(ctx, l.Address(), loan.Kind{}); !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, cause)
	}
}

func TestCloseStopsWhatIsLentAndWhatIsIdle(t *testing.T) {
	p, l := lend(t)
	returned(t, l, loan.Kind{}, borrow(t, l, loan.Kind{}))
	borrow(t, l, loan.Kind{Nodes: 1})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for range l.Account().Starts {
		<-(<-p.started).Done()
	}
}

func TestAtRestNothingRunsButWhatIsLent(t *testing.T) {
	p, l := lend(t)
	kept := borrow(t, l, loan.Kind{})
	lent := <-p.started
	back := borrow(t, l, loan.Kind{})
	idle := <-p.started
	if err := back.Return(); err != nil {
		t.Fatal(err)
	}
	for { // the lender reads the return some time after
		l.Rest()
		select {
		case <-idle.Done():
		default:
			continue
		}
		break
	}
	select {
	case <-lent.Done():
		t.Error("a control plane that is lent was stopped")
	default:
	}
	if err := kept.Discard("the test is over"); err != nil {
		t.Fatal(err)
	}
}

func TestFewControlPlanesWaitForABorrower(t *testing.T) {
	p, l := lend(t)
	var all []*loan.Loan
	for range 5 {
		all = append(all, borrow(t, l, loan.Kind{}))
	}
	for _, b := range all {
		if err := b.Return(); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{}, 5)
	for range 5 {
		process := <-p.started
		go func() { <-process.Done(); ended <- struct{}{} }()
	}
	<-ended
	<-ended
	if a := l.Account(); a.Starts != 5 || len(a.Discarded) != 0 {
		t.Errorf("the account is %+v", a)
	}
}
