// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package loan

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/setpoint-io/setpoint/internal/child"
)

// mostIdle is how many control planes wait for a borrower. Beyond it, the one that has
// waited longest is stopped: a control plane at rest has 250 MB.
const mostIdle = 3

// Start starts a control plane.
type Start func(context.Context, Kind) (*child.Process, error)

// Lender lends control planes. Its methods are safe for concurrent use.
type Lender struct {
	start    Start
	dir      string
	listener net.Listener

	ctx      context.Context // ends when the lender closes
	cancel   context.CancelFunc
	borrower sync.WaitGroup

	mu      sync.Mutex
	idle    []held // the one that came back last is the last
	account Account
	errs    []error // of control planes that did not stop
}

// Account is what became of the control planes.
type Account struct {
	Loans     int
	Starts    int
	Discarded []string // why some were not lent again
}

// held is a control plane, and what it was started for.
type held struct {
	*child.Process
	kind Kind
}

// Listen returns a lender that listens at [Lender.Address]. Close ends it.
func Listen(start Start) (*Lender, error) {
	l := &Lender{start: start}
	var err error
	if l.dir, err = os.MkdirTemp("", "setpoint-loan-"); err != nil {
		return nil, fmt.Errorf("lending control planes: %w", err)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var config net.ListenConfig
	if l.listener, err = config.Listen(l.ctx, "unix", l.Address()); err != nil {
		l.cancel()
		return nil, errors.Join(fmt.Errorf("lending control planes: %w", err), os.RemoveAll(l.dir))
	}
	l.borrower.Go(l.accept)
	return l, nil
}

// Address is where the lender listens, for [Borrow].
func (l *Lender) Address() string { return filepath.Join(l.dir, "socket") }

// Account lists what was lent so far.
func (l *Lender) Account() Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account
	a.Discarded = slices.Clone(a.Discarded)
	return a
}

// Close ends all loans, and stops all control planes.
func (l *Lender) Close() error {
	l.cancel()
	err := l.listener.Close()
	l.borrower.Wait()
	l.trim(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(append(l.errs, err, os.RemoveAll(l.dir))...)
}

// Rest stops the control planes that wait for a borrower. One at rest takes a twentieth of a core. Later loans start others.
func (l *Lender) Rest() { l.trim(0) }

func (l *Lender) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.borrower.Go(func() {
			release := context.AfterFunc(l.ctx, func() { _ = conn.Close() })
			l.serve(conn)
			if release() {
				_ = conn.Close() // the borrower has said what it had to say
			}
		})
	}
}

// serve is one loan, from the question to the return.
func (l *Lender) serve(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	var kind Kind
	if !lines.Scan() {
		return
	}
	if err := json.Unmarshal(lines.Bytes(), &kind); err != nil {
		_ = json.NewEncoder(conn).Encode(Terms{Error: "reading the request: " + err.Error()})
		return
	}
	process, err := l.take(kind)
	if err != nil {
		_ = json.NewEncoder(conn).Encode(Terms{Error: err.Error()})
		return
	}
	err = json.NewEncoder(conn).Encode(Terms{Endpoints: process.Endpoints(), Pid: process.Pid()})
	if err == nil && lines.Scan() && lines.Text() == clean {
		l.giveBack(held{process, kind})
		return
	}
	because := cmp.Or(lines.Text(), "the tests did not give it back")
	l.mu.Lock()
	l.account.Discarded = append(l.account.Discarded, because)
	l.mu.Unlock()
	l.stop(process)
}

// take returns a control plane that is free, or a new one. Of those that are free it is
// the one that came back last, so that others can be stopped.
func (l *Lender) take(kind Kind) (*child.Process, error) {
	l.mu.Lock()
	l.account.Loans++
	for i, h := range slices.Backward(l.idle) {
		if h.kind == kind && !ended(h.Process) {
			l.idle = slices.Delete(l.idle, i, i+1)
			l.mu.Unlock()
			return h.Process, nil
		}
	}
	l.account.Starts++
	l.mu.Unlock()
	return l.start(l.ctx, kind)
}

func ended(p *child.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

func (l *Lender) giveBack(h held) {
	l.mu.Lock()
	l.idle = append(l.idle, h)
	l.mu.Unlock()
	l.trim(mostIdle)
}

// trim stops those that have been free longest, until so many are left.
func (l *Lender) trim(most int) {
	for {
		l.mu.Lock()
		if len(l.idle) <= most {
			l.mu.Unlock()
			return
		}
		first := l.idle[0]
		l.idle = slices.Delete(l.idle, 0, 1)
		l.mu.Unlock()
		l.stop(first.Process)
	}
}

func (l *Lender) stop(p *child.Process) {
	if err := p.Stop(); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs = append(l.errs, err)
	}
}
