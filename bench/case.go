// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/child"
)

// scaleCase is what managers are measured with where there is much of something.
type scaleCase struct {
	what        string
	size        int      // unless --size says another one
	controllers []string // that both managers run
	simulated   bool     // the size is how many simulated Nodes there are
	nodes       int      // that are simulated, whatever the size is
	signs       bool     // the managers are given the keys of the cluster
	args        []string // flags of both managers
	measure     func(ctx context.Context, s *scene) (readings, error)
	// prepare makes what is there before a turn, while a manager of Setpoint runs. All turns of both sides then
	// use one control plane, in which measure leaves no manager and what prepare made. Without prepare each turn has a control plane of its own.
	prepare func(ctx context.Context, s *scene) error
	// plain measures what clients reach that do nothing else, on a control plane
	// without a manager; nil where that says nothing.
	plain func(ctx context.Context, s *scene) (readings, error)
	lines func(size int) []caseLine
}

// caseLine is one measure of a case.
type caseLine struct {
	name, unit, reading string
	aim                 aim
	plain               bool // held against the plain clients
}

// scaleCases are the cases by name. The default, "deployments", is none of them.
var scaleCases = map[string]scaleCase{
	"services": servicesCase, "gc": collectCase, "namespace": namespaceCase, "nodes": nodesCase, "pods20000": podsCase,
	"daemonsets": daemonSetsCase, "disruption": disruptionCase, "hpa": hpaCase, "jobs": jobsCase, "statefulsets": statefulSetsCase,
	"attach": attachCase, "everything": everythingCase, "quota": quotaCase, "start": startCase, "volumes": volumesCase,
}

func scaleCaseNamed(name string) (scaleCase, error) {
	c, ok := scaleCases[name]
	if !ok {
		names := slices.Sorted(maps.Keys(scaleCases))
		return c, fmt.Errorf("there is no case %q of managers; there are deployments, %s", name, strings.Join(names, ", "))
	}
	return c, nil
}

// scene is where a case takes place: a control plane, and the manager that is
// measured.
type scene struct {
	*cluster
	manager *process                                // nil for plain clients
	start   func(flags ...string) (*process, error) // another process of the same manager
	plain   kubernetes.Interface
	dynamic dynamic.Interface
	size    int
	clients int

	own      *ownRequests // of plain and dynamic
	profiler profiler     // of the manager that was started last
	notes    []string     // what is printed beside the readings
}

// turnLimit is when a turn counts as stuck.
const turnLimit = 30 * time.Minute

// runCase measures a case on both sides and prints what was found.
func (b *managerBench) runCase(ctx context.Context, out io.Writer) (err error) {
	c, err := scaleCaseNamed(b.scale)
	if err != nil {
		return err
	}
	if b.size == 0 {
		b.size = c.size
	}
	if b.size < 1 || b.turns < 1 || b.clients < 1 {
		return fmt.Errorf("measuring %s: --size %d, --turns %d, --clients %d: all must be at least 1", b.scale, b.size, b.turns, b.clients)
	}
	printMachine(out)
	fmt.Fprintf(out, "# %s: %s; size %d, %d turn(s), medians\n# controllers: %s\n",
		b.scale, c.what, b.size, b.turns, strings.Join(c.controllers, ","))
	found := map[string][]readings{}
	sides := []string{setpointSide}
	if b.peer {
		sides = append(sides, managerSide)
	}
	if b.peer && c.plain != nil {
		sides = append(sides, plainSide)
	}
	play := b.playCase
	if c.prepare != nil {
		shared, end, sharing := b.share(ctx, &c)
		if sharing != nil {
			return fmt.Errorf("preparing %s: %w", b.scale, sharing)
		}
		defer func() { err = errors.Join(err, end()) }()
		play = shared
	}
	for turn := range b.turns {
		for _, side := range sides {
			fmt.Fprintf(out, "# turn %d, %s; load average %s\n", turn+1, side, loadAverage())
			r, notes, err := play(ctx, &c, side)
			if err != nil && c.prepare == nil && timedOut(err) {
				fmt.Fprintf(out, "# %sturn %d of %s, in which the server did not answer a client in time: %v\n", playedAgain, turn+1, side, err)
				r, notes, err = play(ctx, &c, side)
			}
			if err != nil && timedOut(err) && len(found[side]) > 0 {
				fmt.Fprintf(out, "# %sturn %d of %s, in which the server did not answer a client in time, twice: %v\n", leftOut, turn+1, side, err)
				continue
			}
			if err != nil {
				return fmt.Errorf("measuring %s of %s: %w", b.scale, side, err)
			}
			for _, n := range notes {
				fmt.Fprintf(out, "# %s: %s\n", side, n)
			}
			found[side] = append(found[side], r)
		}
		slices.Reverse(sides) // neither is always first
	}
	printCase(out, c.lines(b.size), found, b.verbose)
	fmt.Fprintf(out, "# load average %s\n", loadAverage())
	return nil
}

// playedAgain and leftOut begin lines about turns that were played again, and about those that have no figures. They are in the page as
// well.
const (
	playedAgain = "played again: "
	leftOut     = "left out: "
)

// timedOut reports whether a turn ended because a server on two cores, which managers and clients share with it, did not answer a
// client of the bench in time. That says nothing of a manager.
func timedOut(err error) bool { return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) }

// The sides of a case besides Setpoint.
const (
	managerSide = "kube-controller-manager"
	plainSide   = "plain-clients"
)

func printCase(out io.Writer, lines []caseLine, found map[string][]readings, verbose bool) {
	for _, l := range lines {
		column := func(side string) (column []float64) {
			for _, r := range found[side] {
				column = append(column, r[l.reading])
			}
			return column
		}
		peer := managerSide
		if l.plain {
			peer = plainSide
		}
		m := measure{name: l.name, unit: l.unit, aim: l.aim, ours: column(setpointSide), theirs: column(peer)}
		m.print(out, verbose)
	}
}

// loadAverage is how busy the machine is besides: figures by the clock are worth
// little on one that is.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// playing measures one side of a case.
type playing func(ctx context.Context, sc *scaleCase, side string) (readings, []string, error)

// share starts the control plane that all turns use, and prepares it.
func (b *managerBench) share(ctx context.Context, sc *scaleCase) (_ playing, end func() error, err error) {
	preparing, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	c, err := startClusterWith(ctx, b.bin, child.Options{NoScheduler: true, Nodes: sc.nodes})
	if err != nil {
		return nil, nil, err
	}
	s, err := newScene(c, b.size, b.clients)
	if err == nil {
		b.stage(s, sc, setpointSide)
		err = s.startAndPrepare(preparing, sc.prepare)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.stop())
	}
	return func(ctx context.Context, sc *scaleCase, side string) (readings, []string, error) {
		ctx, cancel := context.WithTimeout(ctx, turnLimit)
		defer cancel()
		s.notes, s.manager = nil, nil
		b.stage(s, sc, side)
		found, err := sc.measure(ctx, s)
		return found, s.notes, err
	}, c.stop, nil
}

func (s *scene) startAndPrepare(ctx context.Context, prepare func(context.Context, *scene) error) (err error) {
	if s.manager, err = s.start("--leader-elect=false"); err != nil { // a machine that is busy may be too slow for a lease
		return err
	}
	defer s.manager.stop()
	if err := s.waitForServiceAccount(ctx); err != nil {
		return errors.Join(err, s.manager.alive())
	}
	return prepare(ctx, s)
}

// stage sets which side a scene starts, and its profiles.
func (b *managerBench) stage(s *scene, sc *scaleCase, side string) {
	args := slices.Clone(sc.args)
	if sc.signs {
		args = append(args, signing(s.cluster)...)
	}
	start := map[string]candidate{
		setpointSide: b.setpoint, managerSide: b.kubeControllerManager, plainSide: b.setpoint,
	}[side]
	s.start = func(more ...string) (*process, error) {
		profiler, serving, err := newProfiler(b.profile, side) // a port of its own: another one may stand by
		if err != nil {
			return nil, err
		}
		s.profiler = profiler
		return start(s.cluster, strings.Join(sc.controllers, ","), slices.Concat(args, serving, more)...)
	}
}

// playCase measures one side on a fresh control plane. The notes are printed beside the readings.
func (b *managerBench) playCase(ctx context.Context, sc *scaleCase, side string) (found readings, notes []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	options := child.Options{NoScheduler: true, Nodes: sc.nodes}
	if sc.simulated {
		options.Nodes = b.size
	}
	c, err := startClusterWith(ctx, b.bin, options)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	s, err := newScene(c, b.size, b.clients)
	if err != nil {
		return nil, nil, err
	}
	b.stage(s, sc, side)
	if s.manager, err = s.start(); err != nil {
		return nil, nil, err
	}
	defer func() { s.manager.stop() }()
	if err := c.waitForServiceAccount(ctx); err != nil {
		return nil, nil, errors.Join(err, s.manager.alive())
	}
	measure := sc.measure
	if side == plainSide { // the manager was for the ServiceAccount
		s.manager.stop()
		measure = sc.plain
	}
	found, err = measure(ctx, s)
	if err != nil && side != plainSide {
		err = errors.Join(err, s.manager.alive())
	}
	return found, s.notes, err
}

// signing are the flags by which both managers get the keys of a cluster.
func signing(c *cluster) []string {
	e := c.process.Endpoints()
	return []string{
		"--root-ca-file", e.CAFile, "--service-account-private-key-file", e.ServiceAccountKeyFile,
		"--cluster-signing-cert-file", e.CAFile, "--cluster-signing-key-file", e.CAKeyFile,
	}
}

func newScene(c *cluster, size, clients int) (*scene, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1                           // what a client may send is not what is measured
	config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated, and counted on
	s := &scene{cluster: c, size: size, clients: clients, own: &ownRequests{counts: requestCounts{}}}
	config.Wrap(s.own.wrap)
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	s.plain, err = kubernetes.NewForConfig(config)
	return s, err
}

// each calls f for 0 to n-1 from as many goroutines as there are plain clients. An
// error ends it.
func (s *scene) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range s.clients {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// expense is what a part of a case costs the manager.
type expense struct {
	wall     float64 // seconds
	cpu      float64 // seconds
	requests float64 // to the API server, without watches
}

// work is what f costs the manager: CPU and requests until it is at rest again, and wall
// time of f alone. The requests are noted under the name of the part.
func (s *scene) work(ctx context.Context, part string, f func() error) (e expense, err error) {
	if err := s.manager.idle(ctx); err != nil {
		return e, err
	}
	end, err := s.begin(ctx, part)
	if err != nil {
		return e, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return e, err
	}
	wall := time.Since(began).Seconds()
	if err := s.manager.idle(ctx); err != nil {
		return e, err
	}
	e, err = end()
	e.wall = wall
	return e, err
}

// begin begins to measure a part. The function that it returns ends that, and returns what the part
// has cost since.
func (s *scene) begin(ctx context.Context, part string) (end func() (expense, error), err error) {
	requests, err := s.managersRequests(ctx)
	if err != nil {
		return nil, err
	}
	endProfile := s.profiler.during(ctx, part)
	before, err := s.manager.cpu()
	if err != nil {
		return nil, errors.Join(err, endProfile())
	}
	began := time.Now()
	return func() (e expense, err error) {
		e.wall = time.Since(began).Seconds()
		after, err := s.manager.cpu()
		if err := errors.Join(err, endProfile()); err != nil {
			return e, err
		}
		all, err := s.managersRequests(ctx)
		if err != nil {
			return e, err
		}
		sent := all.since(requests)
		e.cpu, e.requests = after-before, sent.total()
		s.notes = append(s.notes, fmt.Sprintf("%s: %.0f requests: %s", part, e.requests, sent))
		return e, nil
	}, nil
}

// createPods creates Pods that no node runs.
func (s *scene) createPods(ctx context.Context, n int, pod func(i int) *corev1.Pod) error {
	return s.each(ctx, n, func(ctx context.Context, i int) error {
		_, err := s.plain.CoreV1().Pods("default").Create(ctx, pod(i), metav1.CreateOptions{})
		return err
	})
}

// addNamespace creates a Namespace.
func (s *scene) addNamespace(ctx context.Context, name string) error {
	_, err := s.plain.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// createReadyPods creates Pods, and writes that they are ready: the least that the server has to do for the
// Pods of any controller. It returns how many seconds that takes.
func (s *scene) createReadyPods(ctx context.Context, n int) (float64, error) {
	pod := func(i int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("plain-", i)}, Spec: template(nil).Spec}
	}
	began := time.Now()
	if err := s.createPods(ctx, n, pod); err != nil {
		return 0, err
	}
	err := s.each(ctx, n, func(ctx context.Context, i int) error { return s.setStatus(ctx, pod(i).Name, readyPod) })
	return time.Since(began).Seconds(), err
}

// awaitNoPods waits until there is no Pod left.
func (s *scene) awaitNoPods(ctx context.Context) error {
	return poll(ctx, "the last Pod to go", func() (bool, error) {
		list, err := s.plain.CoreV1().Pods("default").List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return false, err
		}
		return len(list.Items) == 0, s.aliveManager()
	})
}

// aliveManager returns an error if the manager that is measured has ended.
func (s *scene) aliveManager() error {
	if s.manager == nil {
		return nil
	}
	return s.manager.alive()
}
