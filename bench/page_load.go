// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/manager"
)

// pageCost is what the manager used in the windows with tabs, or without.
type pageCost struct {
	cpu     []float64 // percent of a core
	perRun  []float64 // CPU microseconds
	runs    []float64 // a second
	updates []float64 // of each tab, a second
}

// pageLoad are clients that change ReplicaSets until they are stopped.
type pageLoad struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	failed error
}

// writers is how many clients change objects.
const writers = 16

// startLoad starts clients that change an annotation of ReplicaSets, which runs the controllers of ReplicaSets and of
// Deployments, and waits until controllers run.
func (b *pageBench) startLoad(ctx context.Context, w *world) (*pageLoad, error) {
	s, err := newScene(w.cluster, b.world.sets, writers)
	if err != nil {
		return nil, err
	}
	list, err := s.plain.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errors.New("there is no ReplicaSet to change")
	}
	l := &pageLoad{}
	ending, cancel := context.WithCancel(ctx) // of the changes to come: each that has begun is finished
	l.cancel = cancel
	changes := make(chan int)
	l.running.Go(func() {
		defer close(changes)
		began := time.Now()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for sent := 0; ; {
			for due := int(time.Since(began).Seconds() * float64(b.rate) / 2); sent < due; sent++ {
				select {
				case changes <- sent:
				case <-ending.Done():
					return
				}
			}
			select {
			case <-tick.C:
			case <-ending.Done():
				return
			}
		}
	})
	for range writers {
		l.running.Go(func() {
			for i := range changes {
				of := &list.Items[i%len(list.Items)]
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench.example.com/change":"%d"}}}`, i)
				_, err := s.plain.AppsV1().ReplicaSets(of.Namespace).Patch(ctx, of.Name, types.MergePatchType, patch, metav1.PatchOptions{})
				if err != nil && ctx.Err() == nil {
					l.mu.Lock()
					l.failed = err
					l.mu.Unlock()
				}
			}
		})
	}
	return l, nil
}

// stop ends the changes. It may be called twice.
func (l *pageLoad) stop() {
	l.cancel()
	l.running.Wait()
}

// failure returns why a change failed; nil if none did.
func (l *pageLoad) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// window measures the manager for some seconds, with two tabs or without.
func (b *pageBench) window(ctx context.Context, w *world, tabs bool, random *rand.Rand) (err error) {
	cost := b.cost[tabs]
	if tabs {
		held, err := b.hold(ctx, pageViews[0].path(w, 0), pageViews[1].path(w, random.IntN(b.world.sets)))
		if err != nil {
			return err
		}
		defer func() {
			updates, failed := held.end()
			for _, n := range updates {
				cost.updates = append(cost.updates, n/float64(b.seconds))
			}
			err = errors.Join(err, failed)
		}()
	}
	runs, err := b.runs(ctx)
	if err != nil {
		return err
	}
	cpu, err := w.manager.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(b.seconds) * time.Second):
	}
	used, err := w.manager.cpu()
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	after, err := b.runs(ctx)
	if err != nil {
		return err
	}
	if after == runs {
		return errors.New("no controller ran under load")
	}
	used, ran := used-cpu, float64(after-runs)
	cost.cpu = append(cost.cpu, 100*used/took)
	cost.perRun = append(cost.perRun, 1e6*used/ran)
	cost.runs = append(cost.runs, ran/took)
	return nil
}

// runs returns how many runs the loops of the manager have had.
func (b *pageBench) runs(ctx context.Context) (all uint64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.root+"/debug/controllers?format=json", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var state manager.Overview
	if err := json.NewDecoder(answer.Body).Decode(&state); err != nil {
		return 0, fmt.Errorf("reading how many runs there were: %s: %w", answer.Status, err)
	}
	for i := range state.Loops {
		all += state.Loops[i].Runs
	}
	return all, nil
}

// describeLoad says how many runs there were.
func (b *pageBench) describeLoad() string {
	return fmt.Sprintf("%.0f runs a second without a tab, %.0f with two (medians; %d were asked for)",
		median(b.cost[false].runs), median(b.cost[true].runs), b.rate)
}

// heldTabs are tabs that stay open.
type heldTabs struct {
	command *exec.Cmd
	stdin   io.Closer
	stdout  *bufio.Scanner
}

// hold opens tabs at views, and returns when they have their live updates.
func (b *pageBench) hold(ctx context.Context, paths ...string) (*heldTabs, error) {
	args := []string{"-hold"}
	for _, path := range paths {
		args = append(args, b.root+"/page"+path)
	}
	h := &heldTabs{command: exec.CommandContext(ctx, b.paint, args...)}
	said := &limitedText{}
	h.command.Stderr = said
	stdin, err := h.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := h.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.stdin, h.stdout = stdin, bufio.NewScanner(stdout)
	if err := h.command.Start(); err != nil {
		return nil, err
	}
	if !h.stdout.Scan() || h.stdout.Text() != "open" {
		_ = h.stdin.Close() // it ends by it
		return nil, fmt.Errorf("opening tabs: %w: %s", h.command.Wait(), said.text)
	}
	return h, nil
}

// end closes the tabs, and returns how often the view of each changed.
func (h *heldTabs) end() (updates []float64, err error) {
	if err := h.stdin.Close(); err != nil {
		return nil, err
	}
	for h.stdout.Scan() {
		n, err := strconv.ParseFloat(h.stdout.Text(), 64)
		if err != nil {
			return nil, fmt.Errorf("reading the updates of a tab: %w", err)
		}
		updates = append(updates, n)
	}
	if err := h.command.Wait(); err != nil {
		return nil, fmt.Errorf("closing tabs: %w: %s", err, h.command.Stderr)
	}
	if len(updates) == 0 || updates[0] == 0 {
		return updates, fmt.Errorf("the tab at the loops had no update: %v", updates)
	}
	return updates, nil
}

// limitedText keeps the end of what is written to it.
type limitedText struct{ text string }

func (l *limitedText) Write(p []byte) (int, error) {
	l.text += string(p)
	l.text = l.text[max(0, len(l.text)-2000):]
	return len(p), nil
}

func (l *limitedText) String() string { return l.text }
