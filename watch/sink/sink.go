// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Result is what became of the events given to Send. Because order is kept, they are those
// that are done with, the one that was not sent, and those that were not tried.
type Result struct {
	// Done is how many events, from the first, need not be sent again: they were sent, or
	// refused for good.
	Done int
	// Refused are those of the first Done that were refused.
	Refused []Refusal
	// Err is why the event at Done was not sent. It is nil if all are done.
	Err error
	// Wait is how long the receiver asked to be left alone. 0 is: it did not ask.
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

// Deps are what sinks need of the program they are in.
type Deps struct {
	// Log gets what is worth knowing. Default: nothing is logged.
	Log *slog.Logger
	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
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
}

func (d Deps) withDefaults() Deps {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Clock == nil {
		d.Clock = time.Now
	}
	return d
}

// secret returns what a reference names, without white space at its end: files that were
// made with an editor end with a line break.
func (d Deps) secret(ref SecretRef) (Secret, error) {
	if d.Secret == nil {
		return Secret{}, fmt.Errorf("nobody can read the %s here", ref)
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
func New(_ context.Context, name string, o Options, d Deps) (Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sink %s: %w", name, err)
	}
	d = d.withDefaults()
	d.Log = d.Log.With("sink", name)
	var s Sink
	var err error
	switch {
	case o.Terminal != nil:
		s, err = newTerminal(*o.Terminal, d)
	case o.File != nil:
		s, err = newFile(*o.File)
	case o.Webhook != nil:
		s, err = newWebhook(*o.Webhook, d)
	case o.KubernetesEvents != nil:
		s, err = newKubernetesEvents(*o.KubernetesEvents, d)
	default:
		s, err = newMail(*o.Mail, d)
	}
	if err != nil {
		return nil, fmt.Errorf("sink %s: %w", name, within(o.Sort(), err))
	}
	return s, nil
}

// TestKind is the kind of the object that the event of Test is about. No server serves it.
var TestKind = event.Kind{Group: "setpoint.io", Version: "v1", Kind: "TestMessage", Resource: "testmessages"}

// Test sends one event of TestKind, which says of itself that it is a test. It is tried
// once.
func Test(ctx context.Context, s Sink) error {
	now := time.Now()
	r := s.Send(ctx, []*event.Event{{
		ID: fmt.Sprintf("test-%d", now.UnixNano()), Time: now, Verb: event.Created,
		Kind: TestKind, Key: object.Key{Name: "setpoint-watch-check"}, Classes: []event.Class{event.Content},
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
