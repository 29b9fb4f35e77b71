// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// progress shows the steps that are done: a line each, with how long it took. On a
// terminal the last line shows the oldest step that is under way, with its seconds
// running. Steps may overlap.
type progress struct {
	out  io.Writer
	live bool

	mu      sync.Mutex
	open    []step
	stop    chan struct{} // closed to end the ticking; nil: nothing ticks
	stopped chan struct{}
}

type step struct {
	name  string
	began time.Time
}

// begin begins a step.
func (p *progress) begin(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, step{name, time.Now()})
	if p.live && p.stop == nil {
		p.stop, p.stopped = make(chan struct{}), make(chan struct{})
		go p.tick(p.stop, p.stopped)
	}
}

// end ends a step. One that was not begun is passed over.
func (p *progress) end(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.open, func(s step) bool { return s.name == name })
	if i < 0 {
		return
	}
	p.line("✓", p.open[i])
	p.open = slices.Delete(p.open, i, i+1)
}

// close ends the display. Steps that are still open have failed.
func (p *progress) close() {
	p.mu.Lock()
	for _, s := range p.open {
		p.line("✗", s)
	}
	p.open = nil
	stop, stopped := p.stop, p.stopped
	p.stop = nil
	p.mu.Unlock()
	if stop != nil {
		close(stop)
		<-stopped
	}
}

// line is called with mu held.
func (p *progress) line(mark string, s step) {
	p.clear()
	fmt.Fprintf(p.out, "%s %-28s %5.1f s\n", mark, s.name, time.Since(s.began).Seconds())
}

func (p *progress) clear() {
	if p.live {
		fmt.Fprint(p.out, "\r\033[K")
	}
}

func (p *progress) tick(stop, stopped chan struct{}) {
	defer close(stopped)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		p.mu.Lock()
		p.clear()
		if len(p.open) > 0 {
			fmt.Fprintf(p.out, "  %-28s %5.1f s", p.open[0].name, time.Since(p.open[0].began).Seconds())
		}
		p.mu.Unlock()
		select {
		case <-stop:
			p.mu.Lock()
			p.clear()
			p.mu.Unlock()
			return
		case <-ticker.C:
		}
	}
}
