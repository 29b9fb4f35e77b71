// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
)

// controllers are those that both managers run, unless a case names others.
const controllers = "deployment-controller,replicaset-controller,serviceaccount-controller,node-lifecycle-controller"

// managerBench is the command line of "manager".
type managerBench struct {
	bin         string
	scale       string
	size        int
	turns       int
	deployments int
	replicas    int
	clients     int
	verbose     bool
	profile     string
	peer        bool
	record      bool     // compare with the manager without a record of runs
	budgets     string   // of decoded objects, to compare
	extra       []string // flags of Setpoint's manager
}

// figures are what one turn of one candidate gave.
type figures struct {
	idle    float64 // MB
	rate    float64 // Pods/s
	cpu     float64 // seconds per 1,000 Pods
	after   float64 // MB
	settled float64 // seconds until every Deployment's status says so
}

func runManager(ctx context.Context, args []string, out io.Writer) error {
	var b managerBench
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries")
	flags.StringVar(&b.scale, "case", "deployments", "deployments, daemonsets, disruption, everything, gc, hpa, jobs, namespace, nodes, pods20000, quota, services, start, statefulsets or volumes")
	flags.IntVar(&b.size, "size", 0, "how many Services, Pods, completions, autoscalers, quotas, claims, objects or Nodes a case has, other than deployments (default: what it is about)")
	flags.IntVar(&b.turns, "turns", 3, "turns of each candidate")
	flags.IntVar(&b.deployments, "deployments", 20, "Deployments to create at once")
	flags.IntVar(&b.replicas, "replicas", 100, "replicas of each")
	flags.IntVar(&b.clients, "clients", 32, "plain clients that create Pods for comparison")
	folderFlag(flags, "profile", &b.profile, "`folder` for profiles of both managers, CPU and heap, of each part")
	flags.BoolVar(&b.peer, "peer", true, "measure kube-controller-manager and plain clients in a case other than deployments too")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	flags.BoolVar(&b.record, "record", false, "compare with the same manager without a record of its runs, instead of kube-controller-manager")
	flags.StringVar(&b.budgets, "decoded-budget", "", "compare the manager with these budgets of decoded objects, instead of kube-controller-manager: 0,4Mi,16Mi")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.budgets != "" {
		return b.compareBudgets(ctx, out)
	}
	if b.record && b.scale == "deployments" {
		return b.compareRecord(ctx, out)
	}
	if b.scale != "deployments" {
		return b.runCase(ctx, out)
	}
	ours, theirs := []figures{}, []figures{}
	var plain []float64
	for turn := range b.turns {
		fmt.Fprintf(out, "# turn %d of %d\n", turn+1, b.turns)
		f, err := b.turn(ctx, b.setpoint, setpointSide)
		if err != nil {
			return fmt.Errorf("measuring setpoint: %w", err)
		}
		ours = append(ours, f)
		if f, err = b.turn(ctx, b.kubeControllerManager, managerSide); err != nil {
			return fmt.Errorf("measuring kube-controller-manager: %w", err)
		}
		theirs = append(theirs, f)
		rate, err := b.plain(ctx)
		if err != nil {
			return fmt.Errorf("measuring plain clients: %w", err)
		}
		plain = append(plain, rate)
	}
	column := func(all []figures, pick func(figures) float64) (column []float64) {
		for _, f := range all {
			column = append(column, pick(f))
		}
		return column
	}
	line := func(name, unit string, a aim, pick func(figures) float64) {
		m := measure{name: name, unit: unit, aim: a, ours: column(ours, pick), theirs: column(theirs, pick)}
		m.print(out, b.verbose)
	}
	line("idle-memory", "MB", aim{value: 50}, func(f figures) float64 { return f.idle })
	line("idle-memory-ratio", "MB", aim{most: 1. / 3}, func(f figures) float64 { return f.idle })
	line("pods-created-per-second", perSecond, aim{least: 1}, func(f figures) float64 { return f.rate })
	line("cpu-seconds-per-1000-pods", "s", aim{most: 0.5}, func(f figures) float64 { return f.cpu })
	line("memory-after", "MB", aim{most: 1. / 3}, func(f figures) float64 { return f.after })
	line("seconds-until-status-settled", "s", aim{most: 1}, func(f figures) float64 { return f.settled })
	m := measure{name: "pods-vs-plain-clients", unit: perSecond, aim: aim{least: 0.9},
		ours: column(ours, func(f figures) float64 { return f.rate }), theirs: plain}
	m.print(out, b.verbose)
	return nil
}

// compareRecord measures what the record of runs costs a manager. The two take turns, and neither is always first.
func (b *managerBench) compareRecord(ctx context.Context, out io.Writer) error {
	printMachine(out)
	with, without := []figures{}, []figures{}
	for turn := range b.turns {
		fmt.Fprintf(out, "# turn %d of %d; load average %s\n", turn+1, b.turns, loadAverage())
		sides := []func() error{
			func() error { f, err := b.turn(ctx, b.setpoint, "recorded"); with = append(with, f); return err },
			func() error {
				f, err := b.turn(ctx, b.unrecorded, "unrecorded")
				without = append(without, f)
				return err
			},
		}
		if turn%2 == 1 {
			slices.Reverse(sides)
		}
		for _, side := range sides {
			if err := side(); err != nil {
				return fmt.Errorf("measuring the record of runs: %w", err)
			}
		}
	}
	line := func(name, unit string, a aim, pick func(figures) float64) {
		m := measure{name: name, unit: unit, aim: a}
		for i := range with {
			m.ours, m.theirs = append(m.ours, pick(with[i])), append(m.theirs, pick(without[i]))
		}
		m.print(out, b.verbose)
	}
	line("recorded-cpu-seconds-per-1000-pods", "s", aim{most: 1.02}, func(f figures) float64 { return f.cpu })
	line("recorded-memory-after", "MB", aim{}, func(f figures) float64 { return f.after })
	line("recorded-pods-created-per-second", perSecond, aim{}, func(f figures) float64 { return f.rate })
	return nil
}

// unrecorded is Setpoint's manager without a record of its runs.
func (b *managerBench) unrecorded(c *cluster, controllers string, args ...string) (*process, error) {
	return b.setpoint(c, controllers, append(args, "--run-record-size", "0")...)
}

// candidate starts a manager against a cluster.
type candidate func(c *cluster, controllers string, args ...string) (*process, error)

func (b *managerBench) setpoint(c *cluster, controllers string, args ...string) (*process, error) {
	return startProcess(c.dir, filepath.Join(b.bin, "setpoint"), append([]string{"manager",
		"--kubeconfig", c.kubeconfig, "--controllers", controllers,
		"--leader-elect=false", "--secure-port", "0"}, slices.Concat(b.extra, args)...)...)
}

func (b *managerBench) kubeControllerManager(c *cluster, controllers string, args ...string) (*process, error) {
	return startProcess(c.dir, filepath.Join(b.bin, "kube-controller-manager"), append([]string{
		"--kubeconfig", c.kubeconfig, "--controllers", controllers,
		// As in the figures that the aims were taken from: with its default of
		// 20 requests a second the peer would be limited by its own client.
		"--kube-api-qps", "1000", "--kube-api-burst", "1000",
		"--leader-elect=false", "--secure-port", "0"}, args...)...)
}

// turn measures one candidate on a fresh control plane. Its profiles have the name of the side.
func (b *managerBench) turn(ctx context.Context, start candidate, side string) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	c, err := startCluster(ctx, b.bin)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	profiler, serving, err := newProfiler(b.profile, side)
	if err != nil {
		return f, err
	}
	p, err := start(c, controllers, serving...)
	if err != nil {
		return f, err
	}
	defer p.stop()
	// A manager is at work once the namespace has its ServiceAccount.
	if err := c.waitForServiceAccount(ctx); err != nil {
		return f, errors.Join(err, p.alive())
	}
	if err := p.idle(ctx); err != nil {
		return f, err
	}
	if f.idle, err = p.memory(); err != nil {
		return f, err
	}
	before, err := p.cpu()
	if err != nil {
		return f, err
	}
	total := b.deployments * b.replicas
	pods, err := countPods(ctx, c.client)
	if err != nil {
		return f, err
	}
	endProfile := profiler.during(ctx, "pods")
	defer func() { err = errors.Join(err, endProfile()) }()
	began := time.Now()
	if err := b.createDeployments(ctx, c.client); err != nil {
		return f, err
	}
	if err := pods.reach(ctx, total, p.alive); err != nil {
		return f, err
	}
	f.rate = float64(total) / time.Since(began).Seconds()
	if err := c.waitForStatus(ctx, b.deployments, int32(b.replicas)); err != nil {
		return f, err
	}
	f.settled = time.Since(began).Seconds()
	if err := p.idle(ctx); err != nil {
		return f, err
	}
	after, err := p.cpu()
	if err != nil {
		return f, err
	}
	f.cpu = (after - before) / float64(total) * 1000
	if f.after, err = p.memory(); err != nil {
		return f, err
	}
	if n := pods.seen(); n != total {
		return f, fmt.Errorf("%d Pods were created, want %d", n, total)
	}
	return f, nil
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
}

func (b *managerBench) createDeployments(ctx context.Context, c *client.Client) error {
	replicas := int32(b.replicas)
	view := client.For[*appsv1.Deployment](c)
	errs := make([]error, b.deployments)
	var all sync.WaitGroup
	for i := range b.deployments {
		all.Go(func() {
			labels := map[string]string{"app": fmt.Sprint("web-", i)}
			_, errs[i] = view.Create(ctx, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", i)},
				Spec: appsv1.DeploymentSpec{
					Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
				},
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// plain measures how many Pods a second clients create that do nothing else.
func (b *managerBench) plain(ctx context.Context) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	c, err := startCluster(ctx, b.bin)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	p, err := b.setpoint(c, controllers) // for the ServiceAccount
	if err != nil {
		return 0, err
	}
	if err := c.waitForServiceAccount(ctx); err != nil {
		return 0, errors.Join(err, p.alive())
	}
	p.stop()
	total := int64(b.deployments * b.replicas)
	view := client.For[*corev1.Pod](c.client)
	labels := map[string]string{"app": "plain"}
	var next atomic.Int64
	errs := make([]error, b.clients)
	var all sync.WaitGroup
	began := time.Now()
	for i := range b.clients {
		all.Go(func() {
			for next.Add(1) <= total && errs[i] == nil {
				t := template(labels)
				_, errs[i] = view.Create(ctx, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "plain-", Labels: labels}, Spec: t.Spec,
				})
			}
		})
	}
	all.Wait()
	return float64(total) / time.Since(began).Seconds(), errors.Join(errs...)
}
