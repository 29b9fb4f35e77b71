// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// consistencyBench is the command line of "consistency".
type consistencyBench struct {
	bin     string
	lags    []time.Duration
	writes  []int
	owners  int
	workers int
	rounds  int
	turns   int
	only    string
	verbose bool

	config  *rest.Config // of the server
	plain   kubernetes.Interface
	results map[string][]readings // by combination and side
}

// backOffSide does as the controllers of kube-controller-manager 1.37 do, and
// consistentSide is controller-runtime with EnableReadYourWritesConsistency.
const (
	backOffSide    = "kube-controller-manager-way"
	consistentSide = "controller-runtime-consistent"
)

func runConsistency(ctx context.Context, args []string, out io.Writer) (err error) {
	b := consistencyBench{
		lags: []time.Duration{0, 50 * time.Millisecond, 500 * time.Millisecond}, writes: []int{1, 10, 100},
		results: map[string][]readings{},
	}
	flags := flag.NewFlagSet("consistency", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries")
	flags.IntVar(&b.owners, "owners", 4, "objects whose reconciles write")
	flags.IntVar(&b.workers, "workers", 4, "workers of each controller")
	flags.IntVar(&b.rounds, "rounds", 8, "rounds of each part")
	flags.IntVar(&b.turns, "turns", 3, "turns of each side")
	flags.StringVar(&b.only, "only", "", "measure one combination, such as lag50-writes10")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.owners < 1 || b.workers < 1 || b.rounds < 1 || b.turns < 1 {
		return fmt.Errorf("measuring consistency: --owners %d, --workers %d, --rounds %d, --turns %d: want at least 1 of each",
			b.owners, b.workers, b.rounds, b.turns)
	}
	if b.only != "" {
		c, err := b.combinationNamed(b.only)
		if err != nil {
			return err
		}
		b.lags, b.writes = []time.Duration{c.lag}, []int{c.writes}
	}
	c, err := startCluster(ctx, b.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	return b.measure(ctx, config, out)
}

// combination is a lag of the watch with a number of writes in a run.
type combination struct {
	lag    time.Duration
	writes int
}

func (c combination) String() string {
	return fmt.Sprintf("lag%d-writes%d", c.lag.Milliseconds(), c.writes)
}

func (b *consistencyBench) combinations() (all []combination) {
	for _, lag := range b.lags {
		for _, writes := range b.writes {
			all = append(all, combination{lag, writes})
		}
	}
	return all
}

func (b *consistencyBench) combinationNamed(name string) (combination, error) {
	all := b.combinations()
	i := slices.IndexFunc(all, func(c combination) bool { return c.String() == name })
	if i < 0 {
		return combination{}, fmt.Errorf("measuring consistency: there is no %q; there are %v", name, all)
	}
	return all[i], nil
}

// measure measures all combinations on a server.
func (b *consistencyBench) measure(ctx context.Context, config *rest.Config, out io.Writer) (err error) {
	b.config = rest.CopyConfig(config)
	b.config.QPS = -1 // what a client may send is not what is measured
	if b.plain, err = kubernetes.NewForConfig(b.config); err != nil {
		return err
	}
	if err := b.createWorld(ctx); err != nil {
		return fmt.Errorf("measuring consistency: %w", err)
	}
	printMachine(out)
	fmt.Fprintf(out, "# controller-runtime %s; %d turns of %d rounds, medians; %d objects whose reconciles write, %d workers\n",
		moduleVersion("sigs.k8s.io/controller-runtime"), b.turns, b.rounds, b.owners, b.workers)
	sides := []string{setpointSide, backOffSide, consistentSide}
	for range b.turns {
		for _, c := range b.combinations() {
			for _, side := range sides {
				if err := b.play(ctx, c, side); err != nil {
					return err
				}
			}
		}
		slices.Reverse(sides) // none is always first
	}
	b.print(out)
	return nil
}

// The names of objects in the world of this benchmark. An owner has a namespace for itself and its children.
const (
	ownerName       = "owner"
	othersNamespace = "consistency-others"
	othersCount     = 20
)

func ownerNamespace(writes, i int) string { return fmt.Sprintf("consistency-%d-%d", writes, i) }
func childName(i int) string              { return fmt.Sprint("child-", i) }
func otherName(i int) string              { return fmt.Sprint("other-", i) }

// createWorld creates ConfigMaps that own as many ServiceAccounts as a run writes, and the ConfigMaps that stand for
// other keys. ServiceAccounts cost the server little, and no built-in controller is there to write to them.
func (b *consistencyBench) createWorld(ctx context.Context) error {
	namespace := func(name string) error {
		_, err := b.plain.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	configMap := func(namespace, name string) error {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := b.plain.CoreV1().ConfigMaps(namespace).Create(ctx, o, metav1.CreateOptions{})
		return err
	}
	if err := namespace(othersNamespace); err != nil && !apierrors.IsNotFound(err) { // a server in memory may have no namespaces
		return err
	}
	for i := range othersCount {
		if err := configMap(othersNamespace, otherName(i)); err != nil {
			return err
		}
	}
	for _, writes := range b.writes {
		for i := range b.owners {
			in := ownerNamespace(writes, i)
			if err := namespace(in); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			if err := configMap(in, ownerName); err != nil {
				return err
			}
			for child := range writes {
				o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: childName(child)}}
				if _, err := b.plain.CoreV1().ServiceAccounts(in).Create(ctx, o, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// play measures a side in a process of its own, which reads and writes through a proxy in this one.
func (b *consistencyBench) play(ctx context.Context, c combination, side string) error {
	proxy, err := newLagProxy(b.config, "serviceaccounts", c.lag)
	if err != nil {
		return err
	}
	return serve(ctx, &relabelling{proxy, b.plain}, func(address string) error {
		s := sideSpec{Case: "consistency", Side: side, Kind: "serviceaccounts", Server: address,
			Objects: b.owners, Events: b.rounds, Writes: c.writes, Workers: b.workers}
		found, err := s.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		key := c.String() + " " + side
		b.results[key] = append(b.results[key], found)
		return nil
	})
}

// relabelPath asks the proxy to write a label of a ConfigMap. The process that is measured asks for it, and pays nothing for the write.
const relabelPath = "/relabel"

type relabelling struct {
	http.Handler
	plain kubernetes.Interface
}

func (h *relabelling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != relabelPath {
		h.Handler.ServeHTTP(w, r)
		return
	}
	q := r.URL.Query()
	body := labelPatch(q.Get("label"), q.Get("value"))
	_, err := h.plain.CoreV1().ConfigMaps(q.Get("namespace")).Patch(r.Context(), q.Get("name"), types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

func labelPatch(label, value string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, label, value)
}

func (b *consistencyBench) print(out io.Writer) {
	for _, c := range b.combinations() {
		column := func(side, reading string) (column []float64) {
			for _, found := range b.results[c.String()+" "+side] {
				column = append(column, found[reading])
			}
			return column
		}
		line := func(name, unit, reading string, ours, beside aim) {
			m := measure{name: c.String() + "-" + name, unit: unit, aim: ours,
				ours: column(setpointSide, reading), theirs: column(backOffSide, reading)}
			m.print(out, b.verbose)
			m.name, m.aim, m.theirs = m.name+"-vs-controller-runtime", beside, column(consistentSide, reading)
			m.print(out, b.verbose)
		}
		line("wasted-runs", "", "wasted", aim{none: true}, aim{none: true})
		line("delay-p50", "ms", "p50", aim{value: 1}, aim{}) // less than a request takes
		line("delay-p99", "ms", "p99", aim{}, aim{})
		if c.lag > 0 { // without a lag there is no time in which other keys could run
			line("others-per-second", perSecond, "others", aim{least: 0.9}, aim{least: 0.9})
		}
		line("cpu-per-round", "ms", "cpu", aim{most: 1}, aim{most: 1})
	}
}
