// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 3}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// inTurn is held by the test that runs managers in the shared control plane.
var inTurn sync.Mutex

// onShared returns the shared control plane. A manager acts on all namespaces, so tests have it
// one after the other, beside the test that has a control plane of its own.
func onShared(t *testing.T) *controlplanetest.Cluster {
	t.Helper()
	t.Parallel()
	inTurn.Lock()
	t.Cleanup(inTurn.Unlock)
	cluster := shared.Get(t)
	// After the managers have ended: the next one would work on what is left, and each node has
	// room for some Pods only.
	t.Cleanup(func() {
		_, err := cluster.Kubectl("delete", leftovers, "--all", "--all-namespaces", "--wait=false", "--grace-period=0", "--force")
		if err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// leftovers are the kinds that tests create and that lead to Pods, Pods, and their claims.
const leftovers = "horizontalpodautoscalers,cronjobs,jobs,deployments,statefulsets,daemonsets,replicasets,poddisruptionbudgets,pods,persistentvolumeclaims"

// patience is how long a test waits for something that takes milliseconds on an
// idle machine.
const patience = 2 * time.Minute

// seedVariable has a test make the choices of an earlier run again.
const seedVariable = "SETPOINT_TEST_SEED"

// choices returns a source of choices, and says how to make the same ones again.
func choices(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("$%s: %v", seedVariable, err)
		}
	}
	t.Logf("the same choices again: %s=%d", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 0))
}
