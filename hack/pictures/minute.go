// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/terminal"
)

// The picture of the first minute has three terminals: setpoint up, kubectl beside it, and
// setpoint watch below both.
const (
	minuteFile  = "first-minute.svg"
	minuteTitle = "The first minute"
	minuteAbout = "Three terminals. In the first, setpoint up starts etcd, kube-apiserver, kube-scheduler, simulated nodes and the manager. " +
		"In the second, kubectl creates a StatefulSet, a Job and a Deployment with an autoscaler, lists the Pods and what they use, and the Deployment that the autoscaler has scaled. " +
		"In the third, setpoint watch prints a line for each change: its time, what happened, to which object, what is different, and who did it."

	upColumns, kubectlColumns = 78, 58
	gap                       = 2 // columns between two panes, and lines
	minuteColumns             = upColumns + gap + kubectlColumns
)

// act is one command of kubectl that is drawn.
type act struct {
	args []string
	wait []string // another command of kubectl, which ends when the act can follow; not drawn
}

// minuteWatch are the arguments of the watch, and minuteStory what is done meanwhile.
var (
	minuteWatch = []string{"statefulsets,jobs,deployments"}
	minuteStory = []act{
		{args: []string{"apply", "-f", "docs/first-minute.yaml"}},
		{args: []string{"get", "pods"}},
		{
			args: []string{"top", "pods", "-l", "app=web"},
			wait: []string{"wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=60s"},
		},
		{args: []string{"get", "deployments"}},
	}
)

// The pace of the picture. Typing and waiting are shortened; what setpoint and kubectl print
// is what they printed.
const (
	typing   = 110 * time.Millisecond // from word to word
	upLine   = 350 * time.Millisecond // from line to line of setpoint up
	answers  = 400 * time.Millisecond // from a command to its output
	watched  = 150 * time.Millisecond // from line to line of setpoint watch
	thinking = 1500 * time.Millisecond
	resting  = 12 * time.Second // at the end, before it begins again
)

// minute plays the first minute in the cluster of a "setpoint up" that runs already, and
// returns the picture.
func minute(ctx context.Context, o options, up *terminal.Program) (p picture, err error) {
	w, err := startWatch(ctx, o.setpoint, minuteColumns, minuteWatch)
	if err != nil {
		return picture{}, err
	}
	defer func() { err = errors.Join(err, w.End()) }()

	m := &film{names: map[string]string{}}
	above := pane{columns: upColumns}
	m.play(&above, commandLine("setpoint", "up"), up.Shown(), upLine)
	beside := pane{left: upColumns + gap, columns: kubectlColumns}
	below := pane{columns: minuteColumns}
	m.now += thinking
	m.play(&below, commandLine("setpoint", append([]string{"watch"}, minuteWatch...)...), "", 0)

	read := 0
	for i, act := range minuteStory {
		if act.wait != nil {
			if _, err := kubectlOutput(ctx, o.kubectl, act.wait); err != nil {
				return picture{}, err
			}
		}
		began := time.Now()
		out, err := kubectlOutput(ctx, o.kubectl, act.args)
		if err != nil {
			return picture{}, err
		}
		if err := until(ctx, began.Add(pace)); err != nil {
			return picture{}, err
		}
		m.now += thinking
		m.play(&beside, commandLine("kubectl", act.args...), out, 0)
		all := w.Shown()
		m.add(&below, even(all[read:], o.clock.Add(time.Duration(i)*pace)), watched)
		read = len(all)
	}
	if m.err != nil {
		return picture{}, m.err
	}
	above.rows = max(len(above.lines), len(beside.lines))
	beside.rows = above.rows
	below.top, below.rows = above.rows+gap-1, len(below.lines)
	return picture{title: minuteTitle, about: minuteAbout, panes: []pane{above, beside, below}, lasts: m.now + resting}, nil
}

// film puts what terminals show into panes, in the order of time.
type film struct {
	now   time.Duration
	names map[string]string // of Pods, by the ones that the server made
	err   error
}

// play types a command into a pane and shows its output.
func (m *film) play(p *pane, command, output string, between time.Duration) {
	m.addLines(p, prompt(command), 0, typing)
	m.now += time.Duration(strings.Count(command, " ")+1)*typing + answers
	m.add(p, output, between)
}

// add shows output in a pane, line by line.
func (m *film) add(p *pane, output string, between time.Duration) { m.addLines(p, output, between, 0) }

func (m *film) addLines(p *pane, text string, between, typing time.Duration) {
	lines, err := screen(m.steady(text), p.columns)
	if err != nil && m.err == nil {
		m.err = err
	}
	for _, cells := range lines {
		p.lines = append(p.lines, line{cells: cells, at: m.now, typing: typing})
		m.now += between
	}
}

var (
	temporary = regexp.MustCompile(`/[^\s=]*/setpoint-controlplane-\d+/`)
	podName   = regexp.MustCompile(`\b(web-[0-9a-z]{6,10}-|import-)([0-9a-z]{5})\b`)
	// suffixes take the places of those that the server has made at random.
	suffixes = []string{"x2v9k", "hd7qp", "m4tzw", "b6lcn", "q8rfs"}
)

// steady gives names that are made at random the same name in each picture.
func (m *film) steady(text string) string {
	text = temporary.ReplaceAllString(text, "/tmp/setpoint-controlplane-627709898/")
	return podName.ReplaceAllStringFunc(text, func(name string) string {
		if m.names[name] == "" {
			parts := podName.FindStringSubmatch(name)
			m.names[name] = parts[1] + suffixes[len(m.names)%len(suffixes)]
		}
		return m.names[name]
	})
}

// kubectlOutput runs kubectl and returns its output.
func kubectlOutput(ctx context.Context, path string, args []string) (string, error) {
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// putInPath puts the folder of a program before those in PATH, so that setpoint up finds it
// by its name.
func putInPath(program string) error {
	path, err := filepath.Abs(program)
	if err != nil {
		return fmt.Errorf("finding %s: %w", program, err)
	}
	return os.Setenv("PATH", filepath.Dir(path)+string(filepath.ListSeparator)+os.Getenv("PATH"))
}
