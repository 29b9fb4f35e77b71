// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
)

// stopped is the phase of a manager whose Run has returned.
const stopped = "stopped"

// Run works until ctx ends, the lease is lost, or a part fails for good, and returns when
// nothing of the manager runs any more, or [ShutdownTimeout] is over. The error is that of
// the lease or of the part, and says what has not ended in time; the end of ctx is none.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.running {
		m.mu.Unlock()
		return errors.New("running the manager: it has been run before")
	}
	m.running = true
	m.mu.Unlock()
	s := newStop(ctx, m.shutdown, m.log)
	m.stop.Store(s)
	defer m.phase.Store(stopped)

	endRecord, err := m.keepRecord()
	defer endRecord()
	defer m.exportTraces()()
	serving := m.serve() // whose end closes the listeners
	if err == nil {
		err = m.runUntil(s)
	}
	err = errors.Join(s.reason(), err)
	serving(s.share() / 4)
	return err
}

// runUntil does what there is to do before the parts run, has them run until the stop, and
// stops what it has begun. The error says what was left behind, or what is missing so that
// the parts cannot run at all.
func (m *Manager) runUntil(s *stop) error {
	m.phase.Store("waiting for the server")
	var err error
	if left := s.do(parts, always("waiting for the server"), func() { err = m.waitForServer(s.ctx) }, nil); left != nil || err != nil {
		return left // asked to stop before there was anything to do
	}
	looking := always("reading what the API server publishes")
	endLookingUp := func() {}
	if left := s.do(parts, looking, func() { endLookingUp, err = m.lookUp(s.ctx) }, func() { endLookingUp() }); left != nil {
		return left
	}
	if err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}

	// Groups that stop one after the other: who works, who tells of it, the right to do
	// so, and who tells them of the world. Informers begin first, so that who stands by
	// is ready.
	informersCtx, stopInformers := context.WithCancel(context.WithoutCancel(s.ctx))
	informersEnded := make(chan struct{})
	go func() {
		defer close(informersEnded)
		_ = m.factory.Run(informersCtx)
	}()
	left := m.lead(s)
	stopInformers()
	return errors.Join(left, s.wait(informers, m.informersInTheWay, informersEnded), s.do(informers, looking, endLookingUp, nil))
}

// lead runs the parts once this process may. The error says what was left behind.
func (m *Manager) lead(s *stop) error {
	term, release, left := m.elect(s)
	if term == nil {
		return left
	}
	m.phase.Store("working")
	close(m.elected)

	var recording sync.WaitGroup
	recordersCtx, stopRecorders := context.WithCancel(context.WithoutCancel(s.ctx))
	defer stopRecorders()
	m.mu.Lock()
	all := m.recorders
	m.mu.Unlock()
	var writing busy
	for i, r := range all {
		end := writing.begin(fmt.Sprint(r.name, " ", i), always("writing events of "+r.name))
		recording.Go(func() {
			defer end()
			r.Run(recordersCtx, 2*s.share())
		})
	}
	left = m.work(term, s)
	stopRecorders()
	return errors.Join(left, s.do(recorders, writing.String, recording.Wait, nil), s.do(leasing, always("releasing the lease"), func() {
		var second sync.WaitGroup
		second.Go(func() { m.second.release(m, s) })
		release()
		second.Wait()
	}, nil))
}

// work runs the parts until the stop, which the end of the term and the failure of a part
// begin too, and until they have ended. The error says which were left behind.
func (m *Manager) work(term context.Context, s *stop) error {
	lost := context.AfterFunc(term, func() { s.begin(fmt.Errorf("leading: %w", context.Cause(term))) })
	defer lost()

	m.mu.Lock()
	all := m.parts
	m.mu.Unlock()
	var working sync.WaitGroup
	var running busy
	ctx := controller.WithCatchUp(client.WithRecorder(s.ctx, &m.written), m.catchUpLoop)
	m.second.acquire(s.ctx, s.begin)
	for _, part := range all {
		end := running.begin(part.Name(), func() string { return describe(part) })
		working.Go(func() {
			defer end()
			m.waitToStart(ctx)
			if err := part.Run(m.second.await(ctx, part.Name())); err != nil {
				s.begin(fmt.Errorf("%s: %w", part.Name(), err))
			}
		})
	}
	return s.do(parts, running.String, func() {
		<-s.ctx.Done() // without parts there is still something to wait for
		working.Wait()
	}, nil)
}

// mostNamed bounds the keys that a message names.
const mostNamed = 5

// describe names a part, and what its loops work on if it has some.
func describe(part Runnable) string {
	var keys []string
	for _, l := range loopsOf(part) {
		in := ""
		if l.Name() != part.Name() {
			in = " in " + l.Name()
		}
		s := l.Status(mostNamed)
		for _, r := range s.Keys.Running {
			keys = append(keys, fmt.Sprintf("%s for %s%s", r.Key, time.Since(r.Since).Round(time.Millisecond), in))
		}
		if more := s.Queue.Processing - len(s.Keys.Running); more > 0 {
			keys = append(keys, fmt.Sprintf("%d more%s", more, in))
		}
	}
	if len(keys) == 0 {
		return part.Name()
	}
	return part.Name() + " (working on " + strings.Join(keys, ", ") + ")"
}

// informersInTheWay names the informers that have not ended, and the handlers that they
// wait for.
func (m *Manager) informersInTheWay() string {
	var all []string
	for _, s := range m.factory.Status() {
		if s.Ended {
			continue
		}
		name := "informer of " + strings.TrimSpace(s.Kind+" "+s.Selects)
		var handlers []string
		for _, h := range s.Handlers {
			if h.Busy > 0 {
				handlers = append(handlers, fmt.Sprintf("%s for %s", h.Name, h.Busy.Round(time.Millisecond)))
			}
		}
		if len(handlers) > 0 {
			name += " (its handler " + strings.Join(handlers, ", ") + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}
