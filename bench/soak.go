// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/child"
)

// soakRun has a cluster live through a long time with many faults, and holds what is
// left at the end against what there was after the first minute.
type soakRun struct {
	bin    string
	length time.Duration
	seed   uint64
	out    io.Writer

	dir        string // of everything that is written
	port       int    // of the control plane
	server     *child.Process
	proxy      *soakProxy
	kubeconfig string         // of those whose connections are cut
	direct     *client.Client // not through the proxy: for the writes and the comparisons

	factory   *cache.Factory
	followers []*soakFollower          // from the begin to the end
	passing   map[string]*soakFollower // that come and go
	handlers  map[string]func()        // what removes each
	managers  [2]*soakManager

	steps     map[soakAction]int // how often each was taken
	restarts  int                // of managers
	handovers int
	began     time.Time
}

// runSoak is the command.
func runSoak(ctx context.Context, args []string, out io.Writer) (err error) {
	s := &soakRun{out: out, passing: map[string]*soakFollower{}, handlers: map[string]func(){}, steps: map[soakAction]int{}}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries")
	flags.DurationVar(&s.length, "for", 30*time.Minute, "how long the cluster lives")
	flags.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "chooses what happens when")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.length < shortestSoak {
		return fmt.Errorf("soaking: --for %s: must be at least %s", s.length, shortestSoak)
	}
	if s.dir, err = os.MkdirTemp("", "setpoint-soak-"); err != nil {
		return err
	}
	keep := false
	defer func() {
		if keep {
			fmt.Fprintf(out, "# logs are kept in %s\n", s.dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(s.dir))
	}()
	printMachine(out)
	fmt.Fprintf(out, "# %s, --seed %d\n", s.length, s.seed)
	if err := s.run(ctx); err != nil {
		keep = true
		return fmt.Errorf("soaking with --seed %d: %w", s.seed, err)
	}
	return nil
}

// shortestSoak has time for one fault of each kind in both of its parts.
const shortestSoak = 20 * time.Second

// firstPart is after how much of a soak the figures are taken that those of the end
// are held against: a minute, where that leaves time enough.
func (s *soakRun) firstPart() time.Duration { return min(time.Minute, s.length/3) }

func (s *soakRun) run(ctx context.Context) (err error) {
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.startServer(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.Stop()) }()
	if err := s.connect(ctx); err != nil {
		return err
	}
	defer s.proxy.stop()
	stop, err := s.follow(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for i := range s.managers {
		if s.managers[i], err = s.startSoakManager(fmt.Sprint("manager-first-", i)); err != nil {
			return err
		}
		defer func() { s.managers[i].stop() }()
	}
	s.began = time.Now()
	if _, err := s.part(ctx, "a", s.seed, s.firstPart()); err != nil {
		return err
	}
	start, err := s.figures(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "# the first part has ended after %s: what there is now is held against the end\n", s.elapsed())
	differences, err := s.part(ctx, "b", s.seed+1, s.length-s.firstPart())
	if err != nil {
		return err
	}
	end, err := s.figures(ctx, start)
	if err != nil {
		return err
	}
	return s.judge(differences, end)
}

func (s *soakRun) elapsed() time.Duration { return time.Since(s.began).Round(time.Second) }

func (s *soakRun) startServer(ctx context.Context) (err error) {
	s.server, err = child.Start(ctx, child.Options{
		Path: filepath.Join(s.bin, "setpoint-controlplane"), DataDir: filepath.Join(s.dir, "data"), Port: s.port, Nodes: 3,
	})
	return err
}

// connect starts the proxy and makes a client that goes past it, and a kubeconfig for
// all others.
func (s *soakRun) connect(ctx context.Context) error {
	endpoints := s.server.Endpoints()
	server, err := url.Parse(endpoints.Servers[0])
	if err != nil {
		return fmt.Errorf("reading the address of the control plane: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", endpoints.Kubeconfig)
	if err != nil {
		return err
	}
	if s.direct, err = client.New(config); err != nil {
		return err
	}
	if s.proxy, err = startSoakProxy(ctx, server.Host); err != nil {
		return err
	}
	text, err := os.ReadFile(endpoints.Kubeconfig)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), endpoints.Servers[0]) {
		return fmt.Errorf("%s does not name %s", endpoints.Kubeconfig, endpoints.Servers[0])
	}
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	return os.WriteFile(s.kubeconfig, []byte(strings.ReplaceAll(string(text), endpoints.Servers[0], s.proxy.url())), 0o600) //nolint:gosec // G703: below a folder of our own
}

// follow starts the informers of this process.
func (s *soakRun) follow(ctx context.Context) (stop func() error, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, "informers.log"))
	if err != nil {
		return nil, err
	}
	s.factory = cache.NewFactory(c, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.factory.Run(ctx) }()
	stop = func() error {
		cancel()
		err := <-ended
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return errors.Join(err, log.Close())
	}
	if s.followers, err = soakFollowers(s.factory, s.direct); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// soakFollowers are informers of what the soak changes, and of what follows from that.
func soakFollowers(f *cache.Factory, direct *client.Client) ([]*soakFollower, error) {
	pods, err1 := soakFollow("pods", f, client.For[*corev1.Pod](direct), client.Selection{})
	replicaSets, err2 := soakFollow("replicasets", f, client.For[*appsv1.ReplicaSet](direct), client.Selection{})
	deployments, err3 := soakFollow("deployments", f, client.For[*appsv1.Deployment](direct), client.Selection{})
	configMaps, err4 := soakFollow("configmaps", f, client.For[*corev1.ConfigMap](direct), client.Selection{})
	slicesOf, err5 := soakFollow("endpointslices", f, client.For[*discoveryv1.EndpointSlice](direct), client.Selection{})
	nodes, err6 := soakFollow("nodes", f, client.For[*corev1.Node](direct), client.Selection{})
	kinds, err7 := soakFollow(definitions.Plural, f, client.ForResource[*unstructured.Unstructured](direct, definitions),
		client.Selection{}, cache.OfKind(definitions.GroupVersionKind()))
	return []*soakFollower{pods, replicaSets, deployments, configMaps, slicesOf, nodes, kinds},
		errors.Join(err1, err2, err3, err4, err5, err6, err7)
}

// part has everything happen that is planned, compares, removes what is left, and
// returns when nothing is on the way any more.
func (s *soakRun) part(ctx context.Context, prefix string, seed uint64, length time.Duration) ([]soakDifference, error) {
	steps, cleanup := soakPlan(prefix, seed, length)
	began := time.Now()
	minute := s.elapsed().Truncate(time.Minute) + time.Minute
	for _, step := range steps {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Until(began.Add(step.at))):
		}
		if time.Since(began) > length+soakWait {
			return nil, fmt.Errorf("the machine is too slow: at %s only what was planned for %s has happened", time.Since(began), step.at)
		}
		if err := s.do(ctx, step); err != nil {
			return nil, err
		}
		if s.elapsed() >= minute {
			minute += time.Minute
			if err := s.progress(); err != nil {
				return nil, err
			}
		}
	}
	filled, err := s.agree(ctx)
	if err != nil {
		return nil, err
	}
	for _, step := range cleanup {
		if err := s.do(ctx, step); err != nil {
			return nil, err
		}
	}
	if err := s.empty(ctx); err != nil {
		return nil, err
	}
	emptied, err := s.agree(ctx)
	for i := range emptied {
		emptied[i].who += ", at the end"
	}
	return append(filled, emptied...), err
}

// progress prints what there is in the middle of everything.
func (s *soakRun) progress() error {
	f, err := soakOwnFigures()
	if err != nil {
		return err
	}
	objects := 0
	for _, status := range s.factory.Status() {
		objects += status.Objects
	}
	fmt.Fprintf(s.out, "%5s: %d steps, %d cuts, %d restarts of the control plane, %d handovers, %d managers restarted; %d informers of %d objects, heap %.1f MB, %d goroutines, %d files\n",
		s.elapsed(), s.taken(), s.proxy.cuts, s.steps[restartServer], s.handovers, s.restarts,
		len(s.followers)+len(s.passing), objects, f.heap, int(f.goroutines), int(f.files))
	return nil
}

func (s *soakRun) taken() (all int) {
	for _, n := range s.steps {
		all += n
	}
	return all
}

// agree compares all informers with the server until there is no difference, and
// returns those that remain: what is on the way has time to arrive.
func (s *soakRun) agree(ctx context.Context) (all []soakDifference, err error) {
	ctx, cancel := context.WithTimeout(ctx, soakWait)
	defer cancel()
	followers := slices.Clone(s.followers)
	for _, name := range slices.Sorted(maps.Keys(s.passing)) {
		followers = append(followers, s.passing[name])
	}
	for _, f := range followers {
		var last []soakDifference
		if err := poll(ctx, f.name+" to agree with the server", func() (bool, error) {
			now, err := f.compare(ctx)
			if err != nil {
				return false, nil //nolint:nilerr // the control plane may be away; the last difference is kept
			}
			last = now
			return !slices.ContainsFunc(last, func(d soakDifference) bool { return !d.none() }), nil
		}); err != nil && (last == nil || !errors.Is(err, context.DeadlineExceeded)) {
			return nil, err
		}
		all = append(all, last...)
	}
	return all, nil
}

// empty waits until the controllers have removed what belonged to what is gone.
func (s *soakRun) empty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, soakWait)
	defer cancel()
	left := ""
	err := poll(ctx, "the cluster to be empty", func() (bool, error) {
		if err := s.superviseManagers(); err != nil {
			return false, err
		}
		pods, _, err1 := client.For[*corev1.Pod](s.direct).List(ctx, client.Selection{})
		sets, _, err2 := client.For[*appsv1.ReplicaSet](s.direct).List(ctx, client.Selection{})
		kinds, _, err3 := client.ForResource[*unstructured.Unstructured](s.direct, definitions).List(ctx, client.Selection{})
		left = fmt.Sprintf("%d Pods, %d ReplicaSets, %d custom resources", len(pods), len(sets), len(kinds))
		return errors.Join(err1, err2, err3) == nil && len(pods)+len(sets)+len(kinds) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w: there are %s", err, left)
	}
	return nil
}

// figures are those of this process and of both managers. Given those of the start,
// it takes new ones until none is beyond its bounds, or for a while: what is being
// closed is no leak.
func (s *soakRun) figures(ctx context.Context, start []soakProcess) ([]soakProcess, error) {
	ctx, cancel := context.WithTimeout(ctx, soakWait)
	defer cancel()
	leads, standsBy, err := s.leader(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range []*soakManager{leads, standsBy} {
		if err := m.idle(ctx); err != nil {
			return nil, err
		}
	}
	all := []soakProcess{{name: "informers, this process"}, {name: "manager that leads"}, {name: "manager that stands by"}}
	for try := 0; ; try++ {
		own, err1 := soakOwnFigures()
		first, err2 := soakFiguresOf(ctx, leads.name, leads.command.Process.Pid, leads.port)
		second, err3 := soakFiguresOf(ctx, standsBy.name, standsBy.command.Process.Pid, standsBy.port)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		beyond := 0
		for i, f := range []soakFigures{own, first, second} {
			if start == nil {
				all[i].start = f
				continue
			}
			all[i].start, all[i].end = start[i].start, f
			beyond += len(f.leaks(start[i].start))
		}
		if beyond == 0 || try == soakTries {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return all, nil // beyond their bounds, which is found out of them
		case <-time.After(5 * time.Second):
		}
	}
}

// soakTries is how often figures are measured again: for 100 seconds, which is longer than
// an idle connection lives (http.DefaultTransport: 90 s).
const soakTries = 20

// judge prints both tables and returns an error if the soak has found something.
func (s *soakRun) judge(differences []soakDifference, end []soakProcess) error {
	fmt.Fprintf(s.out, "\n# after %s\n", s.elapsed())
	for _, action := range slices.Sorted(maps.Keys(s.steps)) {
		fmt.Fprintf(s.out, "%-44s %8d\n", action, s.steps[action])
	}
	fmt.Fprintln(s.out)
	printFigures(s.out, end)
	fmt.Fprintln(s.out)
	printDifferences(s.out, differences)
	return soakVerdict(differences, end)
}

func soakVerdict(differences []soakDifference, end []soakProcess) error {
	var found []error
	for _, p := range end {
		for _, leak := range p.end.leaks(p.start) {
			found = append(found, fmt.Errorf("%s has grown: %s", p.name, leak))
		}
	}
	for _, d := range differences {
		if !d.none() {
			found = append(found, fmt.Errorf("%s differs from the server: %d missing, %d extra, %d of a wrong version; first: %s", d.who, d.missing, d.extra, d.wrong, d.first))
		}
	}
	return errors.Join(found...)
}
