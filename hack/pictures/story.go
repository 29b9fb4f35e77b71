// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/terminal"
)

const namespace = "shop"

// pace is the time of a step: what it sets off is over by then, with all its Pods.
const pace = 2 * time.Second

// scene is one watch that is drawn.
type scene struct {
	file, title, about string
	args               []string
}

var scenes = []scene{
	{
		file: "watch.svg", title: "setpoint watch",
		about: "A line for each change: its time, what happened, to which object, what is different, and in grey who did it. " +
			"A Deployment is created, gets another image, is scaled, rolled back and deleted; a ConfigMap is edited; of a Secret only is said that its password changed.",
		args: []string{"deployments,services,configmaps,secrets", "-n", namespace},
	},
	{
		file: "watch-diff.svg", title: "setpoint watch -o diff",
		about: "The same changes field by field: the old and the new value of each, the lines of a file in a ConfigMap that changed, " +
			"and the password of a Secret, which is not shown.",
		args: []string{"deploy,cm,secrets", "-n", namespace, "-o", "diff", "--where", `event.authors.all(a, a.manager != "setpoint")`},
	},
}

// settings is a file in a ConfigMap, of some lines.
const settings = `listen: 8080
cache:
  size: 64Mi
  keep: 10m
log: info
`

// What is created before the watches start, and what is done then, a command of kubectl
// each.
var (
	before = [][]string{
		{"create", "namespace", namespace},
		{"create", "configmap", "settings", "--from-literal=app.yaml=" + settings},
		{"create", "secret", "generic", "login", "--from-literal=user=ada", "--from-literal=password=first"},
	}
	story = [][]string{
		{"create", "deployment", "web", "--image=nginx:1.28", "--replicas=3"},
		{"expose", "deployment", "web", "--port=80"},
		{"edit", "configmap", "settings"},
		{"patch", "secret", "login", "--patch", `{"stringData":{"password":"second"}}`},
		{"set", "image", "deployment/web", "nginx=nginx:1.29"},
		{"scale", "deployment/web", "--replicas=5"},
		{"rollout", "undo", "deployment/web"},
		{"label", "deployment/web", "tier=front"},
		{"delete", "deployment/web", "service/web"},
	}
	// editor is what kubectl edit opens.
	editor = `KUBE_EDITOR=sed -i -e s/64Mi/256Mi/ -e s/info/debug/`
)

// kubectl runs a command in the namespace of the story.
func kubectl(ctx context.Context, path string, args []string) error {
	cmd := exec.CommandContext(ctx, path, append([]string{"--namespace", namespace}, args...)...)
	cmd.Env = append(cmd.Environ(), editor)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// record plays the story and returns what each scene showed.
func record(ctx context.Context, o options) (shown []string, err error) {
	for _, args := range before {
		if err := kubectl(ctx, o.kubectl, args); err != nil {
			return nil, err
		}
	}
	watches := make([]*terminal.Program, len(scenes))
	defer func() {
		for _, w := range watches {
			if w != nil {
				err = errors.Join(err, w.End())
			}
		}
	}()
	for i, s := range scenes {
		if watches[i], err = startWatch(ctx, o.setpoint, o.columns, s.args); err != nil {
			return nil, err
		}
	}
	// Ages are in whole seconds, because the server stores no fractions.
	if err := until(ctx, time.Now().Truncate(time.Second).Add(time.Second)); err != nil {
		return nil, err
	}
	shown = make([]string, len(scenes))
	read := make([]int, len(scenes))
	began := time.Now()
	for i, args := range story {
		if err := kubectl(ctx, o.kubectl, args); err != nil {
			return nil, err
		}
		if err := until(ctx, began.Add(time.Duration(i+1)*pace)); err != nil {
			return nil, err
		}
		for j, w := range watches {
			all := w.Shown()
			shown[j] += even(all[read[j]:], o.clock.Add(time.Duration(i)*pace))
			read[j] = len(all)
		}
	}
	return shown, nil
}

// until waits for a time.
func until(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
