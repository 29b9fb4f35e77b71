// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/cli"
)

// otherDefaults are those that differ from upstream's on purpose: the lease moves sooner,
// and the server is left to say what is too much.
var otherDefaults = map[string]string{
	"kube-api-qps": "0", "leader-elect-lease-duration": "9s", "leader-elect-renew-deadline": "6s",
}

func TestEveryFlagOfKubeControllerManagerHasItsDefaultOrIsRefusedByName(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "kube-controller-manager-flags.txt"))
	if err != nil {
		t.Fatal(err)
	}
	flags := managerCommand(&cli.World{}).Flags()
	missing := missingFlags()
	checked := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		checked++
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		flag := flags.Lookup(name)
		if why, refused := missing[name]; refused {
			if flag != nil {
				t.Errorf("--%s is there, and refused because it %s", name, why)
			}
			continue
		}
		if flag == nil {
			t.Errorf("--%s is neither taken nor refused by name", name)
			continue
		}
		if other, differs := otherDefaults[name]; differs {
			want = other
		}
		if want == "" { // the help does not show zeros
			want = map[string]string{"bool": "false", "duration": "0s", "int": "0", "stringSlice": "[]"}[flag.Value.Type()]
		}
		if got := flag.DefValue; got != want {
			t.Errorf("--%s is %s by default, want %s", name, got, want)
		}
	}
	if checked < 100 {
		t.Errorf("%d flags in the list, which is too short", checked)
	}
}

// tuned parses flags as "setpoint manager" does.
func tuned(t *testing.T, args ...string) (*tuning, error) {
	t.Helper()
	tune := &tuning{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	tune.flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return tune, tune.check()
}

func TestFlagsReachTheOptionsOfTheirControllers(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		get  func(registry.Options) any
		want any
	}{
		{"workers", []string{"--concurrent-replicaset-syncs=7"}, func(o registry.Options) any { return o.Workers["replicaset-controller"] }, 7},
		{"workers of another one", []string{"--concurrent-replicaset-syncs=7"}, func(o registry.Options) any { return o.Workers["deployment-controller"] }, 5},
		{"workers that mirror", []string{"--mirroring-concurrent-service-endpoint-syncs=50"}, func(o registry.Options) any { return o.Workers["endpointslice-mirroring-controller"] }, 50},
		{"endpoints of a slice", []string{"--max-endpoints-per-slice=1000"}, func(o registry.Options) any { return o.MaxEndpointsPerSlice }, 1000},
		{"mirrored addresses", []string{"--mirroring-max-endpoints-per-subset=1"}, func(o registry.Options) any { return o.MaxMirroredPerSubset }, 1},
		{"ended Pods", nil, func(o registry.Options) any { return o.TerminatedPods }, 12500},
		{"ended Pods, all", []string{"--terminated-pod-gc-threshold=0"}, func(o registry.Options) any { return o.TerminatedPods }, -1},
		{"ended Pods, all, written otherwise", []string{"--terminated-pod-gc-threshold=-5"}, func(o registry.Options) any { return o.TerminatedPods }, -1},
		{"tokens of old", []string{"--legacy-service-account-token-clean-up-period=24h"}, func(o registry.Options) any { return o.LegacyTokenCleanUp }, 24 * time.Hour},
		{"a period of Nodes", []string{"--node-monitor-grace-period=40s"}, func(o registry.Options) any { return o.NodeLifecycle.NodeMonitorGracePeriod }, 40 * time.Second},
		{"no evictions", []string{"--node-eviction-rate=0"}, func(o registry.Options) any { return o.NodeLifecycle.NodeEvictionRate }, -1.0},
		{"few evictions", []string{"--secondary-node-eviction-rate=0.5"}, func(o registry.Options) any { return o.NodeLifecycle.SecondaryNodeEvictionRate }, 0.5},
		{"every zone is large", []string{"--large-cluster-size-threshold=0"}, func(o registry.Options) any { return o.NodeLifecycle.LargeClusterSizeThreshold }, 1},
		{"every zone with three is partly down", []string{"--unhealthy-zone-threshold=0"}, func(o registry.Options) any { return o.NodeLifecycle.UnhealthyZoneThreshold > 0 }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			tune, err := tuned(t, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			var o registry.Options
			tune.into(&o)
			if got := test.get(o); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v gives %v, want %v", test.args, got, test.want)
			}
		})
	}
}

func TestTheGarbageCollectorCanBeSwitchedOffByItsOwnFlag(t *testing.T) {
	tune, err := tuned(t, "--enable-garbage-collector=false")
	if err != nil {
		t.Fatal(err)
	}
	all, left := names(registry.Known()), names(tune.of(registry.Known()))
	if len(left) != len(all)-1 || slices.Contains(left, "garbage-collector-controller") {
		t.Errorf("left are %v", left)
	}
}

// refused runs the command and returns its one line.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	w := &cli.World{Stdout: &said, Stderr: &said, Getenv: func(string) string { return "" }}
	if status := run(t.Context(), w, append([]string{"manager", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, args...)); status != 1 {
		t.Errorf("status %d", status)
	}
	return strings.TrimSuffix(said.String(), "\n")
}

func TestAFlagThatIsWrongIsNamedBeforeAnythingIsRead(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--concurrent-deploymet-syncs=5", "there is no flag --concurrent-deploymet-syncs; did you mean --concurrent-deployment-syncs?"},
		{"--concurrent-deployment-syncs=many", "--concurrent-deployment-syncs=many: want a whole number, such as 5"},
		{"--concurrent-deployment-syncs=0", "--concurrent-deployment-syncs=0: want 1 or more"},
		{"--concurrent_rc_syncs=0", "--concurrent-rc-syncs=0: want 1 or more"},
		{"--concurrent-service-endpoint-syncs=51", "--concurrent-service-endpoint-syncs=51: want 1 to 50"},
		{"--max-endpoints-per-slice=1001", "--max-endpoints-per-slice=1001: want 1 to 1000"},
		{"--mirroring-max-endpoints-per-subset=0", "--mirroring-max-endpoints-per-subset=0: want 1 to 1000"},
		{"--node-monitor-period=5", "--node-monitor-period=5: want a time with its unit, such as 50s, 5m or 1h30m"},
		{"--node-monitor-period=0s", "--node-monitor-period=0s: want more than 0"},
		{"--node-monitor-period=60s", "--node-monitor-period=1m0s: want less than --node-monitor-grace-period, which is 50s"},
		{"--legacy-service-account-token-clean-up-period=-1h", "--legacy-service-account-token-clean-up-period=-1h0m0s: want more than 0"},
		{"--node-eviction-rate=-1", "--node-eviction-rate=-1: want Nodes in a second, 0 or more"},
		{"--secondary-node-eviction-rate=NaN", "--secondary-node-eviction-rate=NaN: want Nodes in a second, 0 or more"},
		{"--unhealthy-zone-threshold=55", "--unhealthy-zone-threshold=55: want a share, 0 to 1"},
		{"--large-cluster-size-threshold=-1", "--large-cluster-size-threshold=-1: want 0 or more"},
		{"--enable-garbage-collector=perhaps", "--enable-garbage-collector=perhaps: want true or false"},
		{"--kube-api-qps=fast", "--kube-api-qps=fast: want a number, such as 0.1"},
		{"--kube-api-qps=NaN", "--kube-api-qps=NaN: want a number"},
		{"--kube-api-burst=0", "--kube-api-burst=0: want 1 or more"},
		{"--kube-api-content-type=application/json", "built-in kinds travel as protobuf and the others as JSON"},
		{"--namespace-sync-period=1m", "--namespace-sync-period=1m: namespace-controller comes back by itself"},
		{"--endpointslice-updates-batch-period=1s", "changes of Pods are not held back here"},
		{"--endpoint-updates-batch-period=soon", "--endpoint-updates-batch-period=soon: want a time with its unit"},
		{"--horizontal-pod-autoscaler-sync-period=15s", "--horizontal-pod-autoscaler-sync-period belongs to horizontal-pod-autoscaler-controller, which setpoint does not have yet; leave it out"},
		{"--concurrent_job_syncs=1", "--concurrent-job-syncs belongs to job-controller, which setpoint does not have yet"},
		{"--authorization-always-allow-paths=/metrics", "--authorization-always-allow-paths is a flag of kube-controller-manager that setpoint does not have: health answers everybody"},
		{"--authentication-token-webhook-cache-ttl=1m", "--authentication-token-webhook-cache-ttl=1m: what the API server says about who asks for metrics counts for 10s"},
		{"--feature-gates=PodDeletionCst=true", `no controller here has a feature gate "PodDeletionCst"; did you mean PodDeletionCost?`},
		{"--feature-gates=LogarithmicScaleDown=false", "--feature-gates=LogarithmicScaleDown=false: it is locked to true in 1.37; leave it out"},
		{"--feature-gates=CoordinatedLeaderElection=true", "--feature-gates=CoordinatedLeaderElection=true: setpoint has only CoordinatedLeaderElection=false, because there is one way to elect a leader here"},
		{"--feature-gates=AllBeta=true", "--feature-gates=AllBeta=true: setpoint has only CoordinatedLeaderElection=false"},
		{"--feature-gates=PodDeletionCost", `"PodDeletionCost": want NAME=true or NAME=false`},
		{"--emulated-version=1.33", "--emulated-version=1.33: want 1.34 to 1.37"},
		{"--emulated-version=kube=1.38", "--emulated-version=kube=1.38: want 1.34 to 1.37"},
		{"--emulated-version=1.36,1.35", "want one version"},
		{"--emulated-version=new", "--emulated-version=new: want 1.34 to 1.37"},
	} {
		if got := refused(t, test.args); !strings.Contains(got, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.args, got, test.want)
		}
	}
}

// These are looked at once there is a kubeconfig.
func TestWhatIsWrongAboutWhoIsBelievedIsSaid(t *testing.T) {
	dir := t.TempDir()
	kubeconfig, empty := filepath.Join(dir, "good"), filepath.Join(dir, "empty")
	text := "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: a}]}"
	for file, text := range map[string]string{kubeconfig: text, empty: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nowhere := filepath.Join(dir, "nowhere")
	for args, want := range map[string]string{
		"--authentication-kubeconfig=" + nowhere:    "--authentication-kubeconfig: kubeconfig " + nowhere + " does not exist",
		"--authorization-kubeconfig=" + empty:       "--authorization-kubeconfig: kubeconfig " + empty + " names no cluster",
		"--requestheader-allowed-names=a, ":         "--requestheader-allowed-names: one of its names is empty",
		"--client-ca-file=" + nowhere:               "certificate authorities of clients: open " + nowhere,
		"--requestheader-client-ca-file=" + nowhere: "certificate authorities of proxies: open " + nowhere,
		"--client-ca-file=" + empty:                 "certificate authorities of clients: " + empty + " is empty",
	} {
		if got := refused(t, "--kubeconfig", kubeconfig, "--bind-address=127.0.0.1", "--secure-port="+freePort(t), args); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, want)
		}
	}
}

func TestFlagsWithTheOneValueThatWorksAreTaken(t *testing.T) {
	for _, args := range []string{
		"--kube-api-content-type=application/vnd.kubernetes.protobuf",
		"--namespace-sync-period=300s",
		"--min-resync-period=12h",
		"--endpoint-updates-batch-period=0",
		"--leader-elect-resource-lock=leases",
		"--concurrent_rc_syncs=5",
		"--authentication-token-webhook-cache-ttl=10s",
		"--cluster-name=mine",
		"--feature-gates=PodDeletionCost=true,kube:LogarithmicScaleDown=true",
		"--feature-gates=PodDeletionCost=false",
		"--feature-gates=AllAlpha=true,AllBeta=false",
		"--emulated-version=1.36",
		"--emulated-version=kube=1.35",
		"--v=2",
	} {
		if got := refused(t, args); !strings.Contains(got, "kubeconfig") || !strings.Contains(got, "none does not exist") {
			t.Errorf("%s: %s, want no complaint but that of the kubeconfig", args, got)
		}
	}
}
