// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

var pods = event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}

func made(n int) *event.Event {
	return &event.Event{
		ID: fmt.Sprintf("e%d", n), Time: time.Now(), Verb: event.Created, Kind: pods,
		Key: object.Key{Namespace: "team-a", Name: fmt.Sprintf("web-%d", n)}, UID: "u", Version: "7", Classes: []event.Class{event.Content},
	}
}

// fake is a sink that does what its function says, and keeps what was sent.
type fake struct {
	mu     sync.Mutex
	answer func(ctx context.Context, events []*event.Event) sink.Result
	sent   []string
	calls  []time.Time
	sizes  []int
	closed bool
}

func (f *fake) Send(ctx context.Context, events []*event.Event) sink.Result {
	r := sink.Result{Done: len(events)}
	if f.answer != nil {
		r = f.answer(ctx, events)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, time.Now())
	f.sizes = append(f.sizes, len(events))
	for i, e := range events[:max(r.Done, 0)] {
		if !slices.ContainsFunc(r.Refused, func(x sink.Refusal) bool { return x.Index == i }) {
			f.sent = append(f.sent, e.ID)
		}
	}
	return r
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func (f *fake) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.sent, " ")
}

// bench is a runner at work.
type bench struct {
	*sink.Runner
	*sink.Direct
	log  *bytes.Buffer
	stop func() error
}

func run(t *testing.T, s sink.Sink, d sink.Delivery) *bench {
	t.Helper()
	b := &bench{Direct: sink.NewDirect(1000), log: &bytes.Buffer{}}
	var err error
	b.Runner, err = sink.NewRunner(sink.RunnerOptions{
		Name: "hook", Sink: s, Outbox: b.Direct, Delivery: d, Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}.Steady())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	b.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) put(t *testing.T, events ...*event.Event) {
	t.Helper()
	for _, e := range events {
		if err := b.Put(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

var errAway = errors.New("away")

func away(context.Context, []*event.Event) sink.Result { return sink.Result{Err: errAway} }

func TestEventsAreSentInOrderAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := run(t, f, sink.Delivery{Batch: 2})
		b.put(t, made(1), made(2), made(3), made(4), made(5))
		if err := b.Drained(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // what was sent is counted when it has left the outbox
		if got := f.got(); got != "e1 e2 e3 e4 e5" {
			t.Error(got)
		}
		if s := b.Status(); s.Sent != 5 || s.Waiting != 0 || !s.Oldest.IsZero() || s.InTrouble() || s.LastSent.IsZero() {
			t.Errorf("%+v", s)
		}
		if err := b.stop(); err != nil || !f.closed {
			t.Error(err, f.closed)
		}
	})
}

func TestWaitsDoubleUpToTheLongestAndTheReceiverCanAskForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{}
		f.answer = func(context.Context, []*event.Event) sink.Result {
			switch len(f.calls) {
			case 5:
				return sink.Result{Err: errAway, Wait: 20 * time.Second}
			case 6:
				return sink.Result{Done: 1}
			}
			return sink.Result{Err: errAway}
		}
		b := run(t, f, sink.Delivery{MinWait: time.Second, MaxWait: 5 * time.Second})
		b.put(t, made(1))
		synctest.Wait()
		if s := b.Status(); !s.Trouble.Equal(start) || !s.NextTry.Equal(start.Add(time.Second)) || s.LastError != "away" || s.Waiting != 1 {
			t.Errorf("%+v", s)
		}
		if err := b.Drained(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var at []string
		for _, call := range f.calls {
			at = append(at, call.Sub(start).String())
		}
		if got := strings.Join(at, " "); got != "0s 1s 3s 7s 12s 17s 37s" {
			t.Error(got)
		}
		if s := b.Status(); s.Retried != 6 || s.Sent != 1 || s.InTrouble() || !s.NextTry.IsZero() {
			t.Errorf("%+v", s)
		}
		if warned := strings.Count(b.log.String(), "level=WARN"); warned != 2 || !strings.Contains(b.log.String(), `level=WARN msg="the sink works again"`) {
			t.Error(b.log)
		}
	})
}

func TestOneThatIsDeadDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, well := &fake{answer: away}, &fake{}
		runners := make([]*sink.Runner, 0, 2)
		boxes := make([]*sink.Direct, 0, 2)
		for i, s := range []sink.Sink{dead, well} {
			boxes = append(boxes, sink.NewDirect(10))
			r, err := sink.NewRunner(sink.RunnerOptions{Name: fmt.Sprint(i), Sink: s, Outbox: boxes[i]})
			if err != nil {
				t.Fatal(err)
			}
			runners = append(runners, r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		for _, r := range runners {
			ended.Go(func() {
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		start := time.Now()
		for n := range 10 {
			for _, box := range boxes {
				if err := box.Put(ctx, made(n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := runners[1].Drained(ctx); err != nil || time.Since(start) != 0 {
			t.Error(err, time.Since(start))
		}
		if s := runners[0].Status(); s.Waiting != 10 {
			t.Errorf("%+v", s)
		}
		cancel()
		ended.Wait()
		if err := runners[0].Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has run before") {
			t.Error("a runner ran twice:", err)
		}
	})
}

func TestWhatIsRefusedIsCountedLoggedOnceAndPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(_ context.Context, events []*event.Event) sink.Result {
			r := sink.Result{Done: len(events)}
			for i, e := range events {
				if e.ID != "e2" {
					r.Refused = append(r.Refused, sink.Refusal{Index: i, Err: errors.New("too blue")})
				}
			}
			return r
		}}
		b := run(t, f, sink.Delivery{Batch: 10})
		b.put(t, made(1), made(2), made(3))
		if err := b.Drained(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := b.Status(); s.Refused != 2 || s.Sent != 1 || s.LastError != "too blue" || s.InTrouble() {
			t.Errorf("%+v", s)
		}
		if got := strings.Count(b.log.String(), "too blue"); got != 1 {
			t.Error(b.log)
		}
	})
}

func TestAnEventThatIsNeverTakenIsDroppedWhenItIsOldAndTheNextOnesAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{answer: func(_ context.Context, events []*event.Event) sink.Result {
			for i, e := range events {
				if e.ID == "e2" {
					return sink.Result{Done: i, Err: errAway}
				}
			}
			return sink.Result{Done: len(events)}
		}}
		b := run(t, f, sink.Delivery{Batch: 10, MaxWait: time.Minute, MaxAge: time.Hour})
		b.put(t, made(1), made(2), made(3), made(4))
		if err := b.Drained(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := f.got(); got != "e1 e3 e4" {
			t.Error(got)
		}
		if took := time.Since(start); took < time.Hour || took > time.Hour+2*time.Minute {
			t.Error(took)
		}
		if s := b.Status(); s.Dropped != 1 || s.Sent != 3 || s.InTrouble() {
			t.Errorf("%+v", s)
		}
		if got := strings.Count(b.log.String(), "level=ERROR"); got != 1 || !strings.Contains(b.log.String(), "first=e2") {
			t.Error(b.log)
		}
	})
}

func TestEventsThatAreOldAtTheStartAreTriedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := made(1)
		old.Time = old.Time.Add(-48 * time.Hour)
		f := &fake{}
		f.answer = func(context.Context, []*event.Event) sink.Result {
			if len(f.calls) == 0 {
				return sink.Result{Err: errAway}
			}
			return sink.Result{Done: 1}
		}
		b := run(t, f, sink.Delivery{})
		b.put(t, old)
		if err := b.Drained(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := b.Status(); s.Sent != 1 || s.Dropped != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAReceiverThatStaysAwayLosesOnlyWhatIsOldAndIsNotAskedOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: away}
		b := run(t, f, sink.Delivery{Batch: 10, MaxWait: time.Minute, MaxAge: time.Hour})
		for n := range 180 { // one a minute for three hours
			b.put(t, made(n))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		s := b.Status()
		if s.Dropped < 110 || s.Dropped > 121 || s.Waiting != 180-int(s.Dropped) {
			t.Errorf("%+v", s)
		}
		if age := time.Since(s.Oldest); age > time.Hour+12*time.Minute {
			t.Error(age)
		}
		if len(f.calls) > 200 {
			t.Error("it was asked", len(f.calls), "times in 180 minutes")
		}
	})
}

func TestABatchThatFailsIsTriedInSmallerOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(_ context.Context, events []*event.Event) sink.Result {
			if len(events) > 3 {
				return sink.Result{Err: errAway}
			}
			return sink.Result{Done: len(events)}
		}}
		b := run(t, f, sink.Delivery{Batch: 16})
		var events []*event.Event
		for n := range 16 {
			events = append(events, made(n))
		}
		b.put(t, events...)
		if err := b.Drained(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // as above
		if s := b.Status(); s.Sent != 16 {
			t.Errorf("%+v %v", s, f.sizes)
		}
	})
}

func TestStopping(t *testing.T) {
	for name, c := range map[string]struct {
		takes  time.Duration // of Send
		heeds  bool          // its context
		within time.Duration
		left   int
		closed bool
	}{
		"a send that ends in time counts":                {takes: 3 * time.Second, within: 3 * time.Second, left: 1, closed: true},
		"one that does not is cancelled":                 {takes: time.Minute, heeds: true, within: 5 * time.Second, left: 2, closed: true},
		"one that does not heed that is left to its own": {takes: time.Minute, within: 6 * time.Second, left: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(ctx context.Context, _ []*event.Event) sink.Result {
					if !c.heeds {
						ctx = context.Background()
					}
					select {
					case <-time.After(c.takes):
						return sink.Result{Done: 1}
					case <-ctx.Done():
						return sink.Result{Err: ctx.Err()}
					}
				}}
				b := run(t, f, sink.Delivery{Timeout: time.Hour})
				b.put(t, made(1), made(2))
				synctest.Wait()
				start := time.Now()
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != c.within {
					t.Error("it took", took)
				}
				if s := b.Status(); s.Waiting != c.left || s.InTrouble() || f.closed != c.closed {
					t.Errorf("%+v closed: %v", s, f.closed)
				}
				time.Sleep(c.takes) // of the one that was left behind
			})
		})
	}
}

func TestASinkThatPanicsOrTalksNonsenseStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.answer = func(_ context.Context, events []*event.Event) sink.Result {
			switch len(f.calls) {
			case 0:
				return sink.Result{Done: -4}
			case 1:
				f.calls = append(f.calls, time.Now())
				panic("the token is hunter2")
			}
			return sink.Result{Done: len(events)}
		}
		b := run(t, f, sink.Delivery{})
		b.put(t, made(1))
		if err := b.Drained(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := b.Status(); s.Sent != 1 || s.Retried != 2 || strings.Contains(s.LastError+b.log.String(), "hunter2") {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnOutboxThatFailsEndsTheRun(t *testing.T) {
	r, err := sink.NewRunner(sink.RunnerOptions{Name: "hook", Sink: &fake{}, Outbox: broken{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "sink hook: reading its outbox") {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Next(int) ([]sink.Item, error)  { return nil, errAway }
func (broken) Ack([]sink.Item) error          { return errAway }
func (broken) Wake() <-chan struct{}          { return nil }
func (broken) Waiting() (n int, at time.Time) { return 1, at }

// spoilt is an outbox of which every second item cannot be read.
type spoilt struct{ *sink.Direct }

func (s spoilt) Next(n int) ([]sink.Item, error) {
	items, err := s.Direct.Next(n)
	for i := range items {
		if items[i].Seq%2 == 0 {
			items[i].Event, items[i].Err = nil, errors.New("it is of another schema")
		}
	}
	return items, err
}

func TestWhatCannotBeReadIsDroppedAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f, log := sink.NewDirect(10), &fake{}, &bytes.Buffer{}
		for n := range 6 {
			if err := d.Put(t.Context(), made(n)); err != nil {
				t.Fatal(err)
			}
		}
		d.Close()
		r, err := sink.NewRunner(sink.RunnerOptions{
			Name: "hook", Sink: f, Outbox: spoilt{d}, Delivery: sink.Delivery{Batch: 5}, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if s := r.Status(); f.got() != "e0 e2 e4" || s.Dropped != 3 || s.Sent != 3 || !strings.Contains(log.String(), "it is of another schema") {
			t.Errorf("%s %+v %s", f.got(), s, log)
		}
	})
}

func TestDirectHoldsTheCallerBackAndIsSentOutWhenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sink.NewDirect(2)
		put := 0
		go func() {
			for n := range 4 {
				if err := d.Put(t.Context(), made(n)); err != nil {
					t.Error(err)
				}
				put++
			}
			d.Close()
		}()
		synctest.Wait()
		if put != 2 {
			t.Errorf("%d were put into room for 2", put)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Put(ctx, made(9)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		f := &fake{}
		r, err := sink.NewRunner(sink.RunnerOptions{Name: "term", Sink: f, Outbox: d})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if got := f.got(); got != "e0 e1 e2 e3" {
			t.Error(got)
		}
		if err := d.Put(t.Context(), made(9)); !errors.Is(err, sink.ErrClosed) {
			t.Error(err)
		}
	})
}
