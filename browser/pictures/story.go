// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// pace is the time between two commands. The server stores times in whole seconds: changes of one second could not be told
// apart.
const pace = 2 * time.Second

// The namespaces of the story: of the rollout, and of the quota.
const (
	namespace = "shop"
	crowded   = "outlet"
)

// story are the commands of kubectl, one after the other.
var story = [][]string{
	{"create", "namespace", namespace},
	{"--namespace", namespace, "create", "deployment", "web", "--image=nginx:1.28", "--replicas=6"},
	{"--namespace", namespace, "create", "configmap", "settings", "--from-literal=currency=EUR"},
	{"--namespace", namespace, "rollout", "status", "deployment/web", "--timeout=60s"},
	{"--namespace", namespace, "expose", "deployment", "web", "--port=80"},
	{"--namespace", namespace, "set", "image", "deployment/web", "nginx=registry.invalid/shop/web:1.29"},
	{"create", "namespace", crowded},
	{"--namespace", crowded, "create", "quota", "few", "--hard=pods=2"},
	{"--namespace", crowded, "wait", "--for=jsonpath={.status.hard.pods}=2", "resourcequota/few", "--timeout=60s"},
	{"--namespace", crowded, "create", "deployment", "cart", "--image=nginx:1.28", "--replicas=4"},
	{"--namespace", crowded, "wait", "--for=condition=ReplicaFailure", "deployment/cart", "--timeout=60s"},
}

// play plays the story.
func play(ctx context.Context, kubectl string) error {
	next := time.NewTicker(pace)
	defer next.Stop()
	for _, args := range story {
		if out, err := exec.CommandContext(ctx, kubectl, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
		}
	}
	return nil
}
