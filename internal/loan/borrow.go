// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package loan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/setpoint-io/setpoint/internal/child"
)

// Variable is the environment variable that holds the address of the lender: the path of
// a Unix socket.
const Variable = "SETPOINT_TEST_LENDER"

// Kind is what a borrower needs. Only a control plane that was started for the same kind
// is lent.
type Kind struct {
	// Nodes is how many nodes are simulated.
	Nodes int

	// State names what borrowers do to a new control plane before they use it, and leave
	// done when they give it back.
	State string
}

// Terms are the answer of the lender.
type Terms struct {
	Endpoints child.Endpoints
	Pid       int
	Error     string // why there is no control plane
}

// clean is the line that gives back a control plane which is as it was.
const clean = "clean"

// Loan is a control plane that was borrowed.
type Loan struct {
	Terms
	conn net.Conn
}

// Borrow borrows a control plane from the lender at an address. It waits until one has
// started, if need be; the end of ctx ends the wait.
func Borrow(ctx context.Context, address string, k Kind) (*Loan, error) {
	l, err := borrow(ctx, address, k)
	if err != nil {
		return nil, fmt.Errorf("borrowing a control plane at $%s: %w", Variable, err)
	}
	return l, nil
}

func borrow(ctx context.Context, address string, k Kind) (*Loan, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, err
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the wait
	l := &Loan{conn: conn}
	if err = json.NewEncoder(conn).Encode(k); err == nil {
		err = json.NewDecoder(conn).Decode(&l.Terms)
	}
	if !release() {
		err = context.Cause(ctx)
	} else if err == nil && l.Error != "" {
		err = errors.New(l.Error)
	}
	if err != nil {
		return nil, errors.Join(err, closed(conn))
	}
	return l, nil
}

// closed closes a connection that may be closed already.
func closed(conn net.Conn) error {
	if err := conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Return gives the control plane back as clean, for another borrower.
func (l *Loan) Return() error { return l.end(clean) }

// Discard returns the control plane to be stopped, for a reason that is printed with the
// results of the run.
func (l *Loan) Discard(because string) error { return l.end(strings.ReplaceAll(because, "\n", " ")) }

func (l *Loan) end(line string) error {
	_, err := fmt.Fprintln(l.conn, line)
	if err := errors.Join(err, l.conn.Close()); err != nil {
		return fmt.Errorf("returning the control plane: %w", err)
	}
	return nil
}
