// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/client"
)

// eventFlush is how long events that wait are still written when the manager
// stops.
const eventFlush = 2 * time.Second

// Run works until ctx ends, the lease is lost, or a part fails for good, and returns when
// nothing of the manager runs any more. The error is that of the lease or of the part, or
// says what has not ended in time; the end of ctx is none.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.running {
		m.mu.Unlock()
		return errors.New("running the manager: it has been run before")
	}
	m.running = true
	m.mu.Unlock()
	defer m.phase.Store("stopped")

	serving := m.serve()
	defer serving()
	m.phase.Store("waiting for the server")
	if err := m.waitForServer(ctx); err != nil {
		return nil // asked to stop before there was anything to do
	}
	lookingUp, err := m.lookUp(ctx)
	if err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	defer lookingUp()

	// Groups that stop one after the other: who works, who tells of it, the right to do
	// so, and who tells them of the world. Informers begin first, so that who stands by
	// is ready.
	var informing sync.WaitGroup
	informersCtx, stopInformers := context.WithCancel(context.WithoutCancel(ctx))
	informing.Go(func() { _ = m.factory.Run(informersCtx) })
	err = m.lead(ctx)
	stopInformers()
	if _, left := errors.AsType[*leftError](err); !left { // who reads informers may hold them up
		informing.Wait()
	}
	return err
}

// lead runs the parts once this process may.
func (m *Manager) lead(ctx context.Context) error {
	term, release, err := m.elect(ctx)
	if err != nil {
		return nil // asked to stop while standing by
	}
	defer release()
	m.phase.Store("working")

	var recording sync.WaitGroup
	recordersCtx, stopRecorders := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecorders()
	m.mu.Lock()
	recorders := m.recorders
	m.mu.Unlock()
	for _, r := range recorders {
		recording.Go(func() { r.Run(recordersCtx, eventFlush) })
	}
	err = m.work(ctx, term)
	stopRecorders()
	recording.Wait()
	return err
}

// work runs the parts until ctx or the term ends, or one fails, and they have ended.
func (m *Manager) work(ctx, term context.Context) error {
	partsCtx, stop := context.WithCancelCause(client.WithRecorder(ctx, &m.written))
	defer stop(nil)
	lost := context.AfterFunc(term, func() { stop(fmt.Errorf("leading: %w", context.Cause(term))) })
	defer lost()

	m.mu.Lock()
	parts := m.parts
	m.mu.Unlock()
	ended := make(chan string, len(parts)) // nobody is held up by who no longer listens
	running := map[string]Runnable{}
	for _, part := range parts {
		running[part.Name()] = part
		go func() {
			if err := part.Run(partsCtx); err != nil {
				stop(fmt.Errorf("%s: %w", part.Name(), err))
			}
			ended <- part.Name()
		}()
	}
	if err := m.await(partsCtx, running, ended); err != nil {
		return errors.Join(err, m.reason(ctx, partsCtx))
	}
	return m.reason(ctx, partsCtx)
}

// reason is why the parts were stopped, nil if they were asked to.
func (m *Manager) reason(ctx, partsCtx context.Context) error {
	if ctx.Err() == nil {
		return context.Cause(partsCtx)
	}
	return nil
}

// await waits until ctx has ended and nothing runs any more, or the time for that is over.
func (m *Manager) await(ctx context.Context, running map[string]Runnable, ended <-chan string) error {
	patience := m.shutdown - min(eventFlush+releaseMost, m.shutdown/2)
	asked := ctx.Done()
	var near, over <-chan time.Time
	for len(running) > 0 || asked != nil { // without parts there is still something to wait for
		select {
		case name := <-ended:
			delete(running, name)
		case <-asked:
			asked = nil
			m.stopping.Store(true)
			m.phase.Store("stopping")
			near, over = time.After(patience/2), time.After(patience)
		case <-near:
			m.log.Warn("stopping takes long", "waitingFor", waitedFor(running), "atMost", patience-patience/2)
		case <-over:
			return &leftError{what: waitedFor(running), after: patience}
		}
	}
	return nil
}

// leftError says what did not end.
type leftError struct {
	what  string
	after time.Duration
}

func (e *leftError) Error() string {
	return fmt.Sprintf("stopping the manager: not ended within %s, and left behind: %s", e.after, e.what)
}

// mostNamed bounds the keys that a message names.
const mostNamed = 5

// waitedFor names parts, and what those that are controllers are working on.
func waitedFor(running map[string]Runnable) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(running)) {
		c, ok := running[name].(inspectable)
		if !ok {
			all = append(all, name)
			continue
		}
		var keys []string
		for _, r := range c.Queue().Inspect(mostNamed).Running {
			keys = append(keys, fmt.Sprintf("%s for %s", r.Key, time.Since(r.Since).Round(time.Millisecond)))
		}
		if more := c.Queue().Stats().Processing - len(keys); more > 0 {
			keys = append(keys, fmt.Sprintf("%d more", more))
		}
		if len(keys) > 0 {
			name += " (working on " + strings.Join(keys, ", ") + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}
