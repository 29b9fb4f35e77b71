// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// Sink takes events to one place. It is used by one goroutine at a time.
type Sink interface {
	// Send sends events in their order, and stops at the first that cannot be sent now.
	// It returns when ctx ends, or soon after.
	Send(ctx context.Context, events []*event.Event) Result
	// Close releases what the sink holds. It is called once, after the last Send.
	Close() error
}

// Result is what became of the events given to Send. Send keeps their order: first come the
// events that are done, then the one that was not sent, then those that were not tried.
type Result struct {
	// Done is how many events, from the first, need not be sent again: they were sent, or
	// refused for good.
	Done int
	// Refused are those of the first Done that were refused.
	Refused []Refusal
	// Err is why the event at Done was not sent. It is nil if all are done.
	Err error
	// Wait is how long the receiver asked the sink to wait before the next attempt, or 0.
	Wait time.Duration
}

// Refusal is an event that the receiver will never take.
type Refusal struct {
	// Index is its place in what was given to Send.
	Index int
	Err   error
}

// refuse counts an event as done, and says that it was not sent.
func (r *Result) refuse(err error) {
	r.Refused = append(r.Refused, Refusal{Index: r.Done, Err: err})
	r.Done++
}

// Deps are what sinks need of their program.
type Deps struct {
	// Secret returns what a reference names. Options with references need it.
	Secret func(SecretRef) (string, error)
	// Client is needed for Kubernetes Events.
	Client *client.Client
	// Stdout is needed for a terminal. Each Send writes to it once, or a few times.
	Stdout io.Writer
	// Width is how many columns that has; 0 for any number.
	Width int
	// Zone is in which times are shown to people. Default: UTC.
	Zone *time.Location

	// Tests replace these.
	clock func() time.Time
	roots *x509.CertPool // that a mail server is checked against; nil: those of the system
	dial  func(ctx context.Context, address string) (net.Conn, error)
}

func (d Deps) withDefaults() Deps {
	if d.clock == nil {
		d.clock = time.Now
	}
	if d.dial == nil {
		d.dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	return d
}

// secret returns what a reference names, without white space at its end: files that were
// made with an editor end with a line break.
func (d Deps) secret(ref SecretRef) (Secret, error) {
	if d.Secret == nil {
		return Secret{}, fmt.Errorf("the %s cannot be read here", ref)
	}
	value, err := d.Secret(ref)
	if err != nil {
		return Secret{}, fmt.Errorf("reading the %s: %w", ref, err)
	}
	value = strings.TrimRight(value, " \t\r\n")
	if value == "" {
		return Secret{}, fmt.Errorf("the %s is empty", ref)
	}
	return NewSecret(value), nil
}

// New makes the sink that options describe. A mistake in the options is an error, and so
// are a file that cannot be written, a secret that cannot be read and a URL that is none.
// No connection is made: a receiver that is away is no reason not to start.
func New(name string, o Options, d Deps) (Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sink %s: %w", name, err)
	}
	described := o.described()[0] // Validate has checked that it is the only one
	s, err := described.sink(d.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("sink %s: %w", name, within(described.name, err))
	}
	return s, nil
}

// testKind is the kind of the object that the event of a test is about. No server serves it.
var testKind = event.Kind{Group: "setpoint.io", Version: "v1", Kind: "TestMessage", Resource: "testmessages"}

// tryTime is how long Try may take.
const tryTime = 30 * time.Second

// Try makes a sink, sends one event, whose text says that it is a test, and closes the sink. It
// tries once, for 30 s at most.
func Try(ctx context.Context, name string, o Options, d Deps) error {
	s, err := New(name, o, d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	if err := errors.Join(test(ctx, s), s.Close()); err != nil {
		return fmt.Errorf("sink %s: %w", name, err)
	}
	return nil
}

func test(ctx context.Context, s Sink) error {
	now := time.Now()
	r := s.Send(ctx, []*event.Event{{
		ID: fmt.Sprintf("test-%d", now.UnixNano()), Time: now, Verb: event.Created,
		Kind: testKind, Key: object.Key{Name: "setpoint-watch-check"}, Classes: []event.Class{event.Content},
		Summary: "This is a test message of setpoint watch. Nothing has changed.",
	}})
	switch {
	case len(r.Refused) > 0:
		return fmt.Errorf("the test message was refused: %w", r.Refused[0].Err)
	case r.Err != nil:
		return fmt.Errorf("the test message was not sent: %w", r.Err)
	case r.Done != 1:
		return errors.New("the test message was not sent, and the sink does not say why")
	}
	return nil
}
