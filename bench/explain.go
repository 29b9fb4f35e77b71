// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/object"
)

// explainBench is the command line of "explain".
type explainBench struct {
	bin        string
	sets       int // Deployments
	replicas   int
	namespaces int
	answers    int
	seed       uint64
	peer       bool
	verbose    bool
	profile    string
	flags      []string // of the manager, beside its own

	took map[string][]float64 // milliseconds, by what was measured
}

// answerAim is how many milliseconds an answer may take in a cluster of 20,000 Pods.
const answerAim = 300

func runExplain(ctx context.Context, args []string, out io.Writer) (err error) {
	b := explainBench{took: map[string][]float64{}}
	flags := flag.NewFlagSet("explain", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries")
	flags.IntVar(&b.sets, "deployments", 2000, "Deployments")
	flags.IntVar(&b.replicas, "replicas", 10, "Pods of each")
	flags.IntVar(&b.namespaces, "namespaces", 20, "namespaces of the Deployments")
	flags.IntVar(&b.answers, "answers", 100, "answers of each kind")
	flags.Uint64Var(&b.seed, "seed", rand.Uint64(), "chooses the objects")
	flags.BoolVar(&b.peer, "peer", true, "measure kubectl describe too")
	folderFlag(flags, "profile", &b.profile, "`folder` for a CPU profile of the gathering")
	flags.BoolVar(&b.verbose, "v", false, "print every figure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.sets < 1 || b.replicas < 1 || b.namespaces < 1 || b.namespaces > b.sets || b.answers < 1 {
		return fmt.Errorf("measuring answers: --deployments %d, --replicas %d, --namespaces %d, --answers %d: "+
			"all must be at least 1, and no more namespaces than Deployments", b.sets, b.replicas, b.namespaces, b.answers)
	}
	printMachine(out)
	fmt.Fprintf(out, "# seed %d; %d Deployments of %d Pods in %d namespaces; %d answers of each kind\n", b.seed, b.sets, b.replicas, b.namespaces, b.answers)
	c, err := startCluster(ctx, b.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	w, err := b.populate(ctx, c)
	if err != nil {
		return err
	}
	defer w.manager.stop()
	fmt.Fprintf(out, "# %s\n", w.record)
	if err := b.ask(ctx, w); err != nil {
		return errors.Join(err, w.manager.alive())
	}
	if err := profiled(b.profile, func() error { return b.gather(ctx, w) }); err != nil {
		return errors.Join(err, w.manager.alive())
	}
	b.print(out)
	fmt.Fprintf(out, "# load average %s\n", loadAverage())
	return nil
}

// question is what is asked about.
type question struct {
	name      string
	resource  object.Resource
	kubectl   []string // what a user without Setpoint types
	says      string   // what stands in each answer
	missing   bool     // the object does not exist
	namespace func(w *world, i int) string
	object    func(w *world, i int) string
}

// questions are the kinds of answers that are measured.
var questions = []question{
	{
		name: "deployment", says: "deployment-controller, run", kubectl: []string{"describe", "deployment"}, namespace: (*world).namespaceOf, object: (*world).deployment,
		resource: object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true},
	},
	{
		name: "pod", says: "replicaset-controller, run", kubectl: []string{"describe", "pod"}, namespace: (*world).namespaceOf, object: (*world).pod,
		resource: object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
	},
	{
		name: "namespace", says: "All is as it should be", kubectl: []string{"describe", "namespace"}, namespace: func(*world, int) string { return "" }, object: (*world).namespaceOf,
		resource: object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"},
	},
	{
		name: "missing", kubectl: []string{"describe", "pod"}, missing: true, namespace: (*world).namespaceOf,
		object:   func(w *world, i int) string { return w.pod(i) + "x" },
		resource: object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
	},
}

// ask measures the commands, from before the process starts until it has ended.
func (b *explainBench) ask(ctx context.Context, w *world) error {
	random := rand.New(rand.NewPCG(b.seed, 0))
	programs := []string{"setpoint", "kubectl"}
	if !b.peer {
		programs = programs[:1]
	}
	for range b.answers {
		for _, q := range questions {
			i := random.IntN(b.sets)
			for _, program := range programs {
				args := append([]string{"explain"}, strings.ToLower(q.resource.Kind))
				if program == "kubectl" {
					args = append([]string(nil), q.kubectl...)
				}
				args = append(args, q.object(w, i))
				if namespace := q.namespace(w, i); namespace != "" {
					args = append(args, "-n", namespace)
				}
				if err := b.timeCommand(ctx, w, &q, program, args); err != nil {
					return err
				}
			}
		}
		if err := b.timeCommand(ctx, w, &question{name: "start", says: "setpoint"}, "setpoint", []string{"version"}); err != nil {
			return err
		}
	}
	return nil
}

// timeCommand runs a command. An answer that is none is an error.
func (b *explainBench) timeCommand(ctx context.Context, w *world, q *question, program string, args []string) error {
	command := exec.CommandContext(ctx, filepath.Join(b.bin, program), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "HOME="+w.dir)
	began := time.Now()
	text, err := command.CombinedOutput()
	took := time.Since(began)
	if failed := (*exec.ExitError)(nil); q.missing && errors.As(err, &failed) {
		err = nil // it says so by its exit code
	}
	says := q.says
	switch {
	case q.missing:
		says = map[string]string{"setpoint": "does not exist", "kubectl": "not found"}[program]
	case program == "kubectl":
		says = "Name:"
	}
	silent := strings.Contains(string(text), "does not answer") || strings.Contains(string(text), "no manager")
	if err != nil || silent || !strings.Contains(string(text), says) {
		return fmt.Errorf("%s %s: %w: want an answer with %q, from a manager: %s", program, strings.Join(args, " "), err, says, text)
	}
	b.note(q.name+" "+program, took)
	return nil
}

func (b *explainBench) note(what string, took time.Duration) {
	b.took[what] = append(b.took[what], float64(took.Nanoseconds())/1e6)
}

// gather measures the parts of an answer in this process, whose connections are open: finding the kinds, finding the
// managers, and collecting the facts.
func (b *explainBench) gather(ctx context.Context, w *world) error {
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		return err
	}
	c, err := client.New(config)
	if err != nil {
		return err
	}
	timed := func(what string, f func() error) error {
		began := time.Now()
		err := f()
		b.note(what, time.Since(began))
		return err
	}
	random := rand.New(rand.NewPCG(b.seed, 1))
	var record gather.Record
	for range b.answers {
		if err := timed("kinds", func() error { _, err := c.Discover(ctx); return err }); err != nil {
			return err
		}
		err := timed("managers", func() error {
			managers, unread, err := announce.FindAll(ctx, c)
			if err != nil || len(managers) != 1 || len(unread) > 0 {
				return fmt.Errorf("finding the manager: %v, %v: %w", managers, unread, err)
			}
			if record == nil {
				get, err := managers[0].Pages(config)
				record = gather.Remote(managers[0].URL, get)
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
		g := gather.Gatherer{Client: c, Record: record}
		for _, q := range questions {
			i := random.IntN(b.sets)
			if err := timed(q.name+" facts", func() error { return collect(ctx, &g, w, &q, i) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect collects the facts for one question, and fails unless they are there.
func collect(ctx context.Context, g *gather.Gatherer, w *world, q *question, i int) error {
	facts, err := g.Facts(ctx, q.resource, object.Key{Namespace: q.namespace(w, i), Name: q.object(w, i)})
	if err != nil {
		return err
	}
	if !facts.Recorded || len(facts.Unread) > 0 || (facts.State == nil) != q.missing {
		return fmt.Errorf("the facts of %s are %v, %v", q.object(w, i), facts.Recorded, facts.Unread)
	}
	if answer := explain.Tell(facts); answer.Sentence == "" {
		return fmt.Errorf("the answer about %s has no sentence", q.object(w, i))
	}
	return nil
}

// print writes the figures: of an answer as its user waits for it, and then of the parts.
func (b *explainBench) print(out io.Writer) {
	line := func(name, ours, theirs string, share float64, a aim) {
		m := measure{name: name, unit: "ms", aim: a, ours: []float64{quantile(b.took[ours], share)}}
		if all := b.took[theirs]; len(all) > 0 {
			m.theirs = []float64{quantile(all, share)}
		}
		m.print(out, false)
		if b.verbose {
			fmt.Fprintf(out, "    setpoint %v\n    peer     %v\n", b.took[ours], b.took[theirs])
		}
	}
	for _, q := range questions {
		line("explain-"+q.name+"-p50", q.name+" setpoint", q.name+" kubectl", 0.5, aim{value: answerAim})
		line("explain-"+q.name+"-p99", q.name+" setpoint", q.name+" kubectl", 0.99, aim{value: answerAim})
	}
	line("explain-process-alone-p50", "start setpoint", "", 0.5, aim{})
	for _, part := range []string{"kinds", "managers"} {
		line("explain-"+part+"-p50", part, "", 0.5, aim{})
		line("explain-"+part+"-p99", part, "", 0.99, aim{})
	}
	for _, q := range questions {
		line("explain-"+q.name+"-facts-p50", q.name+" facts", "", 0.5, aim{})
		line("explain-"+q.name+"-facts-p99", q.name+" facts", "", 0.99, aim{})
	}
}
