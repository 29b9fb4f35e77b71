// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// pageBench is the command line of "page".
type pageBench struct {
	world   explainBench
	visits  int
	turns   int
	seconds int
	rate    int
	verbose bool

	paint string // the program that drives Chromium
	root  string // of the pages
	floor string // the address of a page of one word
	took  map[string][]float64
	cost  map[bool]*pageCost // with tabs, and without
}

// paintAim is how many milliseconds the first paint may take in a cluster of 20,000 Pods.
const paintAim = 500

func runPage(ctx context.Context, args []string, out io.Writer) (err error) {
	b := pageBench{took: map[string][]float64{}, cost: map[bool]*pageCost{false: {}, true: {}}}
	flags := flag.NewFlagSet("page", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.world.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries")
	flags.IntVar(&b.world.sets, "deployments", 2000, "Deployments")
	flags.IntVar(&b.world.replicas, "replicas", 10, "Pods of each")
	flags.IntVar(&b.world.namespaces, "namespaces", 20, "namespaces of the Deployments")
	flags.Uint64Var(&b.world.seed, "seed", rand.Uint64(), "chooses the objects")
	flags.IntVar(&b.visits, "visits", 20, "visits to each view, at rest and under load")
	flags.IntVar(&b.turns, "turns", 3, "how often the CPU is measured without and with tabs")
	flags.IntVar(&b.seconds, "seconds", 20, "`seconds` of each of these measurements")
	flags.IntVar(&b.rate, "rate", 1000, "runs a second under load")
	flags.BoolVar(&b.verbose, "v", false, "print every figure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w := &b.world
	if w.sets < 1 || w.replicas < 1 || w.namespaces < 1 || w.namespaces > w.sets || b.visits < 1 || b.turns < 1 || b.seconds < 1 || b.rate < 2 {
		return fmt.Errorf("measuring the page: --deployments %d, --replicas %d, --namespaces %d, --visits %d, --turns %d, --seconds %d, --rate %d: "+
			"all must be at least 1, the rate 2, and no more namespaces than Deployments", w.sets, w.replicas, w.namespaces, b.visits, b.turns, b.seconds, b.rate)
	}
	printMachine(out)
	fmt.Fprintf(out, "# seed %d; %d Deployments of %d Pods in %d namespaces; %d visits to each view\n", w.seed, w.sets, w.replicas, w.namespaces, b.visits)
	if err := b.build(ctx); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	b.root = fmt.Sprintf("http://localhost:%d", port)
	w.flags = []string{"--plain-port", strconv.Itoa(port)}
	c, err := startCluster(ctx, w.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	scene, err := w.populate(ctx, c)
	if err != nil {
		return err
	}
	defer scene.manager.stop()
	fmt.Fprintf(out, "# %s\n", scene.record)
	floor := httptest.NewServer(http.HandlerFunc(oneWord))
	defer floor.Close()
	b.floor = floor.URL
	if err := b.measure(ctx, scene, out); err != nil {
		return errors.Join(err, scene.manager.alive())
	}
	b.print(out)
	fmt.Fprintf(out, "# load average %s\n", loadAverage())
	return nil
}

// floorName is the view that is a page of one word. Its paint is what the browser alone takes on this machine at this time, so it stands beside
// the paint of each view.
const floorName = "one-word"

// oneWord answers with a page that has what the driver of Chromium looks for, and one word.
func oneWord(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, "<!doctype html><title>word</title><main id=main><p data-part=head>word</p></main>") //nolint:errcheck // the visit fails
}

// build builds the program that drives Chromium. It is in a module of its own.
func (b *pageBench) build(ctx context.Context) error {
	bin, err := filepath.Abs(b.world.bin)
	if err != nil {
		return err
	}
	b.paint = filepath.Join(bin, "page-paint")
	command := exec.CommandContext(ctx, "go", "build", "-o", b.paint, "./paint")
	command.Dir = filepath.Join("..", "browser")
	command.Env = append(command.Environ(), "GOWORK=off")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the driver of Chromium: %w\n%s", err, text)
	}
	return nil
}

// pageView is a view that is measured.
type pageView struct {
	name string
	path func(w *world, i int) string
}

var pageViews = []pageView{
	{"loops", func(*world, int) string { return "/" }},
	{"deployment", func(w *world, i int) string {
		return "/o/apps/deployments/" + w.namespaceOf(i) + "/" + w.deployment(i)
	}},
	{"pod", func(w *world, i int) string { return "/o/core/pods/" + w.namespaceOf(i) + "/" + w.pod(i) }},
	{"changes", func(w *world, i int) string { return "/changes?namespace=" + w.namespaceOf(i) }},
}

// measure measures visits at rest, then visits and open tabs under load.
func (b *pageBench) measure(ctx context.Context, w *world, out io.Writer) error {
	random := rand.New(rand.NewPCG(b.world.seed, 2))
	if err := b.visit(ctx, w, random, ""); err != nil {
		return err
	}
	load, err := b.startLoad(ctx, w)
	if err != nil {
		return err
	}
	defer load.stop()
	for range b.turns {
		for _, tabs := range []bool{false, true} {
			if err := b.window(ctx, w, tabs, random); err != nil {
				return errors.Join(err, load.failure())
			}
		}
	}
	err = b.visit(ctx, w, random, "busy-")
	load.stop()
	fmt.Fprintf(out, "# under load: %s\n", b.describeLoad())
	return errors.Join(err, load.failure())
}

// visit visits each view some times, in turn.
func (b *pageBench) visit(ctx context.Context, w *world, random *rand.Rand, name string) error {
	var addresses, names []string
	for range b.visits {
		i := random.IntN(b.world.sets)
		for _, v := range pageViews {
			addresses = append(addresses, b.root+"/page"+v.path(w, i))
			names = append(names, v.name)
		}
		addresses, names = append(addresses, b.floor), append(names, floorName)
	}
	command := exec.CommandContext(ctx, b.paint, addresses...)
	var said strings.Builder
	command.Stderr = &said
	text, err := command.Output()
	if err != nil {
		return fmt.Errorf("visiting the page: %w: %s", err, said.String())
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	read := 0
	for ; lines.Scan(); read++ {
		var answered, painted float64
		if _, err := fmt.Sscan(lines.Text(), &answered, &painted); err != nil || answered <= 0 || painted <= 0 {
			return fmt.Errorf("visiting the page: the answer and the first paint are %q: %w", lines.Text(), err)
		}
		what := name + names[min(read, len(names)-1)]
		b.took["page-paint-"+what] = append(b.took["page-paint-"+what], painted)
		b.took["page-answer-"+what] = append(b.took["page-answer-"+what], answered)
	}
	if read != len(addresses) {
		return fmt.Errorf("visiting the page: %d of %d visits have a figure", read, len(addresses))
	}
	return nil
}

// print writes the figures.
func (b *pageBench) print(out io.Writer) {
	for _, state := range []string{"", "busy-"} {
		for _, v := range pageViews {
			b.printTimes(out, "page-paint-"+state+v.name, "page-paint-"+state+floorName, aim{value: paintAim})
			b.printTimes(out, "page-answer-"+state+v.name, "page-answer-"+state+floorName, aim{})
		}
	}
	with, without := b.cost[true], b.cost[false]
	for _, m := range []measure{
		{name: "page-manager-cpu-two-tabs", unit: "%", ours: with.cpu, theirs: without.cpu},
		{name: "page-manager-cpu-run-two-tabs", unit: "us", ours: with.perRun, theirs: without.perRun},
		{name: "page-updates-of-a-tab", unit: "/s", ours: with.updates},
	} {
		m.print(out, b.verbose)
	}
}

// printTimes writes the quantiles of some times, beside those of others.
func (b *pageBench) printTimes(out io.Writer, what, beside string, a aim) {
	all := b.took[what]
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		m := measure{name: what + "-" + q.name, unit: "ms", aim: a, ours: []float64{quantile(all, q.share)}, theirs: []float64{quantile(b.took[beside], q.share)}}
		m.print(out, false)
	}
	if b.verbose {
		fmt.Fprintf(out, "    %v\n", all)
	}
}
