// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/legacytokencleaner"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/internal/cli"
)

// tuned parses flags as "setpoint manager" does.
func tuned(t *testing.T, args ...string) (*tuning, error) {
	t.Helper()
	tune := &tuning{known: registry.Known()}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	tune.flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return tune, tune.check()
}

// options returns the options of type O that a controller is made with.
func options[O any](t *testing.T, tune *tuning) *O {
	t.Helper()
	for _, d := range tune.known {
		if o, ok := d.Options.(*O); ok {
			return o
		}
	}
	t.Fatalf("no controller has options of type %T", *new(O))
	return nil
}

func TestFlagsReachTheOptionsOfTheirControllers(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		get  func(*tuning) any
		want any
	}{
		{"workers", []string{"--concurrent-replicaset-syncs=7"}, func(tune *tuning) any { return options[replicaset.Options](t, tune).Workers }, 7},
		{"workers of another one", []string{"--concurrent-replicaset-syncs=7"}, func(tune *tuning) any { return options[deployment.Options](t, tune).Workers }, 5},
		{"workers that mirror", []string{"--mirroring-concurrent-service-endpoint-syncs=50"}, func(tune *tuning) any { return options[endpointslicemirroring.Options](t, tune).Workers }, 50},
		{"endpoints of a slice", []string{"--max-endpoints-per-slice=1000"}, func(tune *tuning) any { return options[endpointslice.Options](t, tune).MaxEndpointsPerSlice }, 1000},
		{"mirrored addresses", []string{"--mirroring-max-endpoints-per-subset=1"}, func(tune *tuning) any { return options[endpointslicemirroring.Options](t, tune).MaxEndpointsPerSubset }, 1},
		{"a period above the grace period", []string{"--node-monitor-period=10m"}, func(tune *tuning) any { return options[nodelifecycle.Options](t, tune).NodeMonitorPeriod }, 10 * time.Minute},
		{"a batch of Endpoints", []string{"--endpoint-updates-batch-period=1s"}, func(tune *tuning) any { return options[endpoints.Options](t, tune).BatchPeriod }, time.Second},
		{"a batch of slices", []string{"--endpointslice-updates-batch-period=2s"}, func(tune *tuning) any { return options[endpointslice.Options](t, tune).BatchPeriod }, 2 * time.Second},
		{"a batch of mirrors", []string{"--mirroring-endpointslice-updates-batch-period=3s"}, func(tune *tuning) any { return options[endpointslicemirroring.Options](t, tune).BatchPeriod }, 3 * time.Second},
		{"Namespaces", []string{"--namespace-sync-period=1m"}, func(tune *tuning) any { return options[namespace.Options](t, tune).SyncPeriod }, time.Minute},
		{"ended Pods", nil, func(tune *tuning) any { return options[podgc.Options](t, tune).TerminatedPodThreshold }, 12500},
		{"tokens of old", []string{"--legacy-service-account-token-clean-up-period=24h"}, func(tune *tuning) any { return options[legacytokencleaner.Options](t, tune).CleanUpPeriod }, 24 * time.Hour},
		{"a period of Nodes", []string{"--node-monitor-grace-period=40s"}, func(tune *tuning) any { return options[nodelifecycle.Options](t, tune).NodeMonitorGracePeriod }, 40 * time.Second},
		{"no evictions", []string{"--node-eviction-rate=-1"}, func(tune *tuning) any { return options[nodelifecycle.Options](t, tune).NodeEvictionRate }, -1.0},
		{"a share that 32 bits do not hold", []string{"--unhealthy-zone-threshold=0.55"}, func(tune *tuning) any { return options[nodelifecycle.Options](t, tune).UnhealthyZoneThreshold }, 0.55},
		{"ended Pods, all", []string{"--terminated-pod-gc-threshold=-5"}, func(tune *tuning) any { return options[podgc.Options](t, tune).TerminatedPodThreshold }, -5},
		{"few evictions", []string{"--secondary-node-eviction-rate=0.5"}, func(tune *tuning) any { return options[nodelifecycle.Options](t, tune).SecondaryNodeEvictionRate }, 0.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			tune, err := tuned(t, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := test.get(tune); !reflect.DeepEqual(got, test.want) {
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
	byDefault, left := names(running(registry.Known())), names(running(tune.known))
	if len(left) != len(byDefault)-1 || slices.Contains(left, "garbage-collector-controller") {
		t.Errorf("left are %v", left)
	}
}

func TestNodesGetRangesOnlyWhereAFlagAsksForIt(t *testing.T) {
	for args, want := range map[string]bool{"": false, "--allocate-node-cidrs=false --cluster-cidr=10.0.0.0/8": false, "--allocate-node-cidrs": true} {
		tune, err := tuned(t, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(names(running(tune.known)), "node-ipam-controller"); got != want {
			t.Errorf("%q runs node-ipam-controller: %t", args, got)
		}
	}
}

// freePort is a port that nothing listens on: the kernel gave it to the test, which gave it
// back.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// refused runs the command and returns its one line.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	w := &cli.World{Stdout: &said, Stderr: &said, Getenv: func(string) string { return "" }}
	root := &cobra.Command{Use: "setpoint"}
	root.AddCommand(Command(w, ""))
	args = append([]string{"manager", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, args...)
	if status := w.Run(t.Context(), root, "setpoint", JoinLevels(args)); status != 1 {
		t.Errorf("status %d", status)
	}
	return strings.TrimSuffix(said.String(), "\n")
}

func TestWithoutWorkersAControllerIsLeftOut(t *testing.T) {
	for _, args := range []string{
		"--concurrent-deployment-syncs=0", "--concurrent-deployment-syncs=-3", "--legacy-service-account-token-clean-up-period=0s",
	} {
		tune, err := tuned(t, args)
		if err != nil {
			t.Fatal(err)
		}
		run := running(tune.known)
		if len(run) != len(running(registry.Known()))-1 {
			t.Errorf("%s leaves %v", args, names(run))
		}
		var log bytes.Buffer
		sayStopped(slog.New(slog.NewTextHandler(&log, nil)), tune.known, run, nil)
		if said := log.String(); strings.Count(said, "a controller is not started") != 1 || !strings.Contains(said, "because=\""+args) {
			t.Errorf("%s: the log says %s", args, said)
		}
	}
}

func TestAFlagThatIsWrongIsNamedBeforeAnythingIsRead(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--concurrent-deploymet-syncs=5", "there is no flag --concurrent-deploymet-syncs; did you mean --concurrent-deployment-syncs?"},
		{"--concurrent-deployment-syncs=many", "--concurrent-deployment-syncs=many: want a whole number, such as 5"},
		{"--concurrent-deployment-syncs=3000000000", "--concurrent-deployment-syncs=3000000000: want a whole number, such as 5"},
		{"--concurrent-service-endpoint-syncs=51", "--concurrent-service-endpoint-syncs=51: want 1 to 50"},
		{"--mirroring-concurrent_service-endpoint-syncs=0", "--mirroring-concurrent-service-endpoint-syncs=0: want 1 to 50"},
		{"--max-endpoints-per-slice=1001", "--max-endpoints-per-slice=1001: want 1 to 1000"},
		{"--mirroring-max-endpoints-per-subset=0", "--mirroring-max-endpoints-per-subset=0: want 1 to 1000"},
		{"--node-monitor-period=5", "--node-monitor-period=5: want a time with its unit, such as 50s, 5m or 1h30m"},
		{"--enable-garbage-collector=perhaps", "--enable-garbage-collector=perhaps: want true or false"},
		{"--kube-api-qps=fast", "--kube-api-qps=fast: want a number, such as 0.1"},
		{"--kube-api-qps=5 --kube-api-burst=0", "--kube-api-burst=0: want 1 or more where --kube-api-qps is set"},
		{"--endpoint-updates-batch-period=soon", "--endpoint-updates-batch-period=soon: want a time with its unit"},
		{"--horizontal-pod-autoscaler-sync-period=15", "--horizontal-pod-autoscaler-sync-period=15: want a time with its unit"},
		{"--concurrent_job_syncs=0", "--concurrent-job-syncs=0: want 1 or more"},
		{"--attach-detach-reconcile-sync-period=999ms", "--attach-detach-reconcile-sync-period=999ms: want 1s or more"},
		{"--cloud-provider=aws", "--cloud-provider=aws: Kubernetes has no cloud providers of its own any more; want external, or leave it out"},
		{"--cidr-allocator-type=CloudAllocator", "--cidr-allocator-type=CloudAllocator: want RangeAllocator"},
		{"--service-cluster-ip-range=a,b,c", "--service-cluster-ip-range=a,b,c: want two networks at most"},
		{"--log-flush-frequency=0s", "--log-flush-frequency=0s: want 1ns or more"},
		{"--log-json-info-buffer-size=x", "--log-json-info-buffer-size=x: want a number of bytes"},
		{"--vmodule=a=x", `--vmodule=a=x: "a=x": want a pattern of files and a level`},
		{"--show-hidden-metrics-for-version=1.35", "--show-hidden-metrics-for-version=1.35: want 1.36"},
		{"--disabled-metrics=a-b", `--disabled-metrics: "a-b" is no name of a metric`},
		{"--allow-metric-labels=a=b", `--allow-metric-labels: "a": want a metric and a label of it`},
		{"--logging-format=xml", "--logging-format=xml: want text or json"},
		{"-v=x", "-v"},
		{"--v=-1", "--v=-1: want a whole number that is not negative"},
		{"--version=other", "--version=other: want true, false or raw"},
		{"--tls-sni-cert-key=a", "--tls-sni-cert-key=a: want the files of a certificate and of its key"},
		{"--feature-gates=PodDeletionCst=true", `no component of Kubernetes 1.34 to 1.37 has a feature gate "PodDeletionCst"; did you mean PodDeletionCost?`},
		{"--feature-gates=OrderedNamespaceDeletion=false", "--feature-gates=OrderedNamespaceDeletion=false: it is locked to true in 1.37; leave it out"},
		{"--feature-gates=PodDeletionCost", `"PodDeletionCost": want NAME=true or NAME=false`},
		{"--emulated-version=1.33", "--emulated-version=1.33: want 1.34 to 1.37"},
		{"--emulated-version=kube=1.38", "--emulated-version=kube=1.38: want 1.34 to 1.37"},
		{"--emulated-version=1.36,1.35", "want one version"},
		{"--emulated-version=new", "--emulated-version=new: want 1.34 to 1.37"},
		{"--emulated-version=1.35 --min-compatibility-version=1.36", "--min-compatibility-version=1.36: want 1.35, which --emulated-version names, or less"},
		{"--controllers=foo", `no controller is called "foo"`},
		{"argument", `"argument": setpoint manager takes flags alone`},
	} {
		if got := refused(t, strings.Fields(test.args)...); !strings.Contains(got, test.want) {
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
		"--allocate-node-cidrs":                     "making node-ipam-controller: --allocate-node-cidrs needs --cluster-cidr",
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

// The log says in one line what has no effect, and the names are all in it.
func TestWhatHasNoEffectIsSaidOnce(t *testing.T) {
	args := "--configure-cloud-routes --route-reconciliation-period=7s --cloud-provider=external --vmodule=a=1 " +
		"--feature-gates=JobPodReplacementPolicy=false,PodDeletionCost=true --controllers=*,node-route-controller,-service --kube-api-content-type=text/plain"
	var idle idleFlags
	var log bytes.Buffer
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	tune := &tuning{known: registry.Known()}
	var controllers []string
	var contentType string
	tune.flags(flags)
	idle.flags(flags)
	flags.StringSliceVar(&controllers, "controllers", nil, "")
	flags.StringVar(&contentType, "kube-api-content-type", protobuf, "")
	if err := flags.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	if err := idle.check(); err != nil {
		t.Fatal(err)
	}
	sayIdle(slog.New(slog.NewTextHandler(&log, nil)), &idle, tune, controllers, contentType)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 {
		t.Fatalf("%d lines, want that of what has no effect:\n%s", len(lines), log.String())
	}
	for _, want := range []string{
		"accepted without effect", `cloudProviders="--cloud-provider --configure-cloud-routes --route-reconciliation-period"`,
		"logging=--vmodule", "controllers=node-route-controller", "featureGates=JobPodReplacementPolicy", "contentType=",
	} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s\nis missing in\n%s", want, lines[0])
		}
	}
}

func TestAManagerOfAllControllersNamesTheKindsThatItHasNoneFor(t *testing.T) {
	said := func(choice ...string) string {
		chosen, err := registry.Select(registry.Known(), choice)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		sayWithoutController(slog.New(slog.NewTextHandler(&log, nil)), chosen, chosen, choice)
		return log.String()
	}
	if got := said("*"); got != "" {
		t.Errorf("of all controllers: %s", got)
	}
	if got := said("*", "-deployment"); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO") || !strings.Contains(got, "notRunning=Deployments\n") {
		t.Errorf("without one: %s", got)
	}
	if got := said("deployment", "replicaset"); got != "" {
		t.Errorf("of two that are named, where another manager runs the rest: %s", got)
	}
}
