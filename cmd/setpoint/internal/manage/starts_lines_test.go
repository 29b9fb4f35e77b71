// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// startLines are the command lines: each flag of kube-controller-manager at, below and beyond
// its usual values, and those that are written by hand.
func startLines(t *testing.T, program string) []string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, flag := range flagsOfHelp(string(text)) {
		if elsewhere[flag.name] {
			continue
		}
		values, known := valuesOf[flag.kind]
		if !known {
			t.Errorf("--%s is a %s, of which there are no values to try", flag.name, flag.kind)
		}
		for _, value := range values {
			if value == "{default}" {
				value = flag.byDefault
			}
			lines = append(lines, "'--"+flag.name+"="+value+"'")
		}
	}
	for line := range strings.Lines(handWritten) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return distinct(lines)
}

// distinct leaves out lines that occurred before: a default may also be one of the values.
func distinct(lines []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(lines, func(line string) bool {
		before := seen[line]
		seen[line] = true
		return before
	})
}

// helpFlag is a flag as the help shows it.
type helpFlag struct{ name, short, kind, byDefault string }

var (
	flagLine    = regexp.MustCompile(`(?m)^ +(?:-([a-zA-Z]), )?--([a-z0-9_-]+)(?: ([a-zA-Z0-9,=.]+))?(?:\[=[^\]]*\])?  +(.*(?:\n {20,}.*)*)`)
	defaultText = regexp.MustCompile(`\(default "?([^"]*?)"?\)\s*$`)
)

func flagsOfHelp(text string) (all []helpFlag) {
	for _, m := range flagLine.FindAllStringSubmatch(text, -1) {
		f := helpFlag{short: m[1], name: m[2], kind: m[3]}
		if f.kind == "" {
			f.kind = "bool"
		}
		if d := defaultText.FindStringSubmatch(m[4]); d != nil {
			f.byDefault = strings.Trim(d[1], "[]")
		}
		all = append(all, f)
	}
	return all
}

// elsewhere are flags whose lines are written by hand: what they name must be there, or ends
// the process.
var elsewhere = map[string]bool{
	"kubeconfig": true, "feature-gates": true, "controllers": true, "secure-port": true, "bind-address": true, "help": true, "version": true,
	"emulated-version": true, "min-compatibility-version": true, "enable-leader-migration": true, "leader-migration-config": true,
	"allow-metric-labels-manifest": true, "vmodule": true,
	"pv-recycler-pod-template-filepath-hostpath": true, "pv-recycler-pod-template-filepath-nfs": true,
	"service-account-private-key-file": true, "root-ca-file": true,
}

// valuesOf are those that are tried of a kind of flag.
var valuesOf = map[string][]string{
	"bool":           {"true", "false", "perhaps"},
	"duration":       {"{default}", "0s", "-1s", "1ms", "1s", "90000h", "5", "soon"},
	"int":            {"{default}", "0", "-1", "65536", "x"},
	"int32":          {"{default}", "0", "-1", "1", "51", "100000", "2147483648", "x"},
	"float":          {"{default}", "0", "-1", "1e30", "NaN", "x"},
	"float32":        {"{default}", "0", "-1", "1e30", "NaN", "1e39", "x"},
	"string":         {"{default}", "", "other"},
	"strings":        {"{default}", "", "a,b"},
	"quantity":       {"0", "1Ki", "x"},
	"Level":          {"0", "2", "10", "-1", "x"},
	"int32Slice":     {"", "23,24", "x", "4588"},
	"namedCertKey":   {"a,b", "a"},
	"stringToString": {"", "a,b=c", "a"},
}

// handWritten are lines of installers, and of flags that go together.
const handWritten = `
# Nothing, and what ends at once.
--help
-h
--version
--version=raw
--version=false
--version=v1.37.2+own
--version=other
''
positional
--no-such-flag
--concurrent-deploymet-syncs=5
--leader-elect
--leader-elect=false
-v 4
-v4
-v=4
--v 2
-v=x

# kubeadm 1.37, with and without --pod-network-cidr.
--authentication-kubeconfig={kubeconfig} --authorization-kubeconfig={kubeconfig} --bind-address=127.0.0.1 --client-ca-file={cert} --cluster-name=kubernetes --cluster-signing-cert-file={cert} --cluster-signing-key-file={key} --controllers=*,bootstrapsigner,tokencleaner --kubeconfig={kubeconfig} --leader-elect=true --requestheader-client-ca-file={cert} --root-ca-file={cert} --service-account-private-key-file={key} --use-service-account-credentials=true
--allocate-node-cidrs=true --authentication-kubeconfig={kubeconfig} --authorization-kubeconfig={kubeconfig} --bind-address=127.0.0.1 --client-ca-file={cert} --cluster-cidr=10.244.0.0/16 --cluster-name=kubernetes --cluster-signing-cert-file={cert} --cluster-signing-key-file={key} --controllers=*,bootstrapsigner,tokencleaner --kubeconfig={kubeconfig} --leader-elect=true --requestheader-client-ca-file={cert} --root-ca-file={cert} --service-account-private-key-file={key} --service-cluster-ip-range=10.96.0.0/12 --use-service-account-credentials=true
# As of k3s and rke2.
--allocate-node-cidrs=true --authentication-kubeconfig={kubeconfig} --authorization-kubeconfig={kubeconfig} --bind-address=127.0.0.1 --cluster-cidr=10.42.0.0/16 --cluster-signing-kube-apiserver-client-cert-file={cert} --cluster-signing-kube-apiserver-client-key-file={key} --cluster-signing-kubelet-client-cert-file={cert} --cluster-signing-kubelet-client-key-file={key} --cluster-signing-kubelet-serving-cert-file={cert} --cluster-signing-kubelet-serving-key-file={key} --cluster-signing-legacy-unknown-cert-file={cert} --cluster-signing-legacy-unknown-key-file={key} --configure-cloud-routes=false --controllers=*,tokencleaner,-service,-route,-cloud-node-lifecycle --kubeconfig={kubeconfig} --profiling=false --root-ca-file={cert} --service-account-private-key-file={key} --service-cluster-ip-range=10.43.0.0/16 --use-service-account-credentials=true
--flex-volume-plugin-dir=/var/lib/kubelet/volumeplugins --terminated-pod-gc-threshold=1000 --permit-port-sharing=true --tls-cert-file={cert} --tls-private-key-file={key} --cert-dir={dir} --use-service-account-credentials=true
# As of kops.
--allocate-node-cidrs=true --attach-detach-reconcile-sync-period=1m0s --cloud-provider=external --cluster-cidr=100.96.0.0/11 --cluster-name=minimal.example.com --cluster-signing-cert-file={cert} --cluster-signing-key-file={key} --configure-cloud-routes=false --flex-volume-plugin-dir=/usr/libexec/kubernetes/kubelet-plugins/volume/exec/ --leader-elect=true --root-ca-file={cert} --service-account-private-key-file={key} --tls-cert-file={cert} --tls-private-key-file={key} --use-service-account-credentials=true --v=2
# As of kubespray.
--allocate-node-cidrs=true --node-cidr-mask-size-ipv4=24 --node-cidr-mask-size-ipv6=120 --cluster-cidr=10.233.64.0/18,fd85:ee78:d8a6:8607::1:0000/112 --service-cluster-ip-range=10.233.0.0/18 --configure-cloud-routes=false --leader-elect-lease-duration=15s --leader-elect-renew-deadline=10s --node-monitor-grace-period=40s --node-monitor-period=5s --profiling=False --terminated-pod-gc-threshold=12500 --feature-gates=RotateKubeletServerCertificate=true --tls-min-version=VersionTLS12 --tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
# As of managed services.
--allocate-node-cidrs=false --attach-detach-reconcile-sync-period=5m --concurrent-deployment-syncs=100 --concurrent-replicaset-syncs=100 --concurrent-service-endpoint-syncs=50 --concurrent-endpoint-syncs=50 --concurrent-gc-syncs=30 --concurrent-job-syncs=20 --concurrent-namespace-syncs=20 --kube-api-qps=100 --kube-api-burst=120 --kube-api-content-type=application/vnd.kubernetes.protobuf --large-cluster-size-threshold=0 --node-eviction-rate=0.1 --endpointslice-updates-batch-period=500ms --endpoint-updates-batch-period=500ms --mirroring-endpointslice-updates-batch-period=500ms --min-resync-period=12h --horizontal-pod-autoscaler-sync-period=15s --route-reconciliation-period=10s --node-monitor-period=2s --logging-format=json -v=2
--controllers=*,-nodeipam,-cloud-node-lifecycle,-csrsigning --external-cloud-volume-plugin=gce --cloud-provider=external --cloud-config= --enable-dynamic-provisioning=true --enable-hostpath-provisioner=false --cidr-allocator-type=RangeAllocator --contention-profiling --allow-untagged-cloud --node-sync-period=10s --authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics
# As of the local clusters.
--cluster-signing-cert-file={cert} --cluster-signing-key-file={key} --leader-elect=false --v=3 --vmodule= --feature-gates=AllAlpha=false --use-service-account-credentials --enable-hostpath-provisioner=true --pvclaimbinder-sync-period=15s --cert-dir={dir} --service-account-private-key-file={key} --root-ca-file={cert} --controllers=* --cloud-provider= --cloud-config=
--master=https://127.0.0.1:1 --kubeconfig={kubeconfig}
--master=https://127.0.0.1:1 --kubeconfig=
--master=127.0.0.1:1 --kubeconfig=
--master=:::: --kubeconfig={kubeconfig}
--kubeconfig={dir}/none
--kubeconfig={empty}
--kubeconfig=

# Which controllers.
--controllers=
--controllers=*
--controllers=*,*
--controllers=foo
--controllers=*,-foo
--controllers=-*
--controllers=-deployment
--controllers=job-controller
--controllers=job,cronjob
--controllers=*,-job,-cronjob-controller,statefulset
--controllers=deployment,-deployment
--controllers=-deployment-controller,-replicaset-controller,*
--controllers=* --controllers=-deployment
--controllers=Deployment
--controllers=*,service-lb-controller,cloud-node-lifecycle-controller,node-route-controller
--controllers=*,selinux-warning-controller,device-taint-eviction-controller,storage-version-migrator-controller,resource-claim-controller,podcertificaterequestcleaner
--controllers=serviceaccount-token,root-ca-cert-publisher
--controllers=bootstrapsigner,csrapproving,csrcleaner,csrsigning,clusterrole-aggregation,cronjob,daemonset,deployment,disruption,endpoint,endpointslice,endpointslicemirroring,ephemeral-volume,garbagecollector,horizontalpodautoscaling,job,legacy-service-account-token-cleaner,namespace,nodeipam,nodelifecycle,attachdetach,persistentvolume-binder,persistentvolume-expander,pv-protection,pvc-protection,podgc,replicaset,replicationcontroller,resource-claim-controller,resourcequota,root-ca-cert-publisher,serviceaccount,serviceaccount-token,statefulset,svm,storage-version-gc,tokencleaner,ttl-after-finished,ttl

# Gates.
--feature-gates=
--feature-gates=,
--feature-gates=AllAlpha=true
--feature-gates=AllBeta=true
--feature-gates=AllBeta=false
--feature-gates=AllAlpha=true,AllBeta=true
--feature-gates=PodDeletionCost=false
--feature-gates=kube:PodDeletionCost=false
--feature-gates=kube:PodDeletionCost=false,NodeLifecycleConditions=true
--feature-gates=other:PodDeletionCost=false
--feature-gates=PodDeletionCost
--feature-gates=PodDeletionCost=
--feature-gates=PodDeletionCost=maybe
--feature-gates=PodDeletionCst=true
--feature-gates=LogarithmicScaleDown=true
--feature-gates=LogarithmicScaleDown=false
--feature-gates=OrderedNamespaceDeletion=false
--feature-gates=SeparateTaintEvictionController=false
--feature-gates=CoordinatedLeaderElection=true
--feature-gates=CoordinatedLeaderElection=true --leader-elect=false
--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true
--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=false
--feature-gates=DeploymentReplicaSetTerminatingReplicas=false
--feature-gates=StaleControllerConsistencyReplicaSet=false
--feature-gates=NodeControllerLeaseCircuitBreaker=false
--feature-gates=AtomicFIFO=false
--feature-gates=JobPodReplacementPolicy=false
--feature-gates=JobPodReplacementPolicy=true
--feature-gates=RootlessControlPlane=true
--feature-gates=WatchListClient=false,RotateKubeletServerCertificate=true,GracefulNodeShutdown=true,MemoryQoS=false,DRAPartitionableDevices=false
--feature-gates=PodDeletionCost=false --feature-gates=PodDeletionCost=true
--feature-gates=PodDeletionCost=1,GenericWorkload=0
--feature-gates=ContextualLogging=true,LoggingAlphaOptions=true,LoggingBetaOptions=true
--feature-gates=InPlacePodVerticalScaling=true,SidecarContainers=true
--feature-gates=InPlacePodVerticalScaling=false
--emulated-version=1.37
--emulated-version=1.36
--emulated-version=1.35
--emulated-version=1.34
--emulated-version=1.33
--emulated-version=1.38
--emulated-version=kube=1.35
--emulated-version=v1.35
--emulated-version=1.35.0
--emulated-version=1.35.1
--emulated-version=other=1.35
--emulated-version=
--emulated-version=1.36,1.36
--emulated-version=1
--emulated-version=1.36 --feature-gates=NodeControllerLeaseCircuitBreaker=false
--emulated-version=1.35 --feature-gates=StaleControllerConsistencyReplicaSet=true
--emulated-version=1.34 --feature-gates=DeploymentReplicaSetTerminatingReplicas=true
--emulated-version=1.34 --feature-gates=PreferSameTrafficDistribution=false
--emulated-version=1.35 --feature-gates=PreferSameTrafficDistribution=false
--emulated-version=1.34 --feature-gates=AllAlpha=true
--min-compatibility-version=1.36
--min-compatibility-version=1.37
--min-compatibility-version=1.34
--min-compatibility-version=1.33
--min-compatibility-version=1.38
--min-compatibility-version=x
--min-compatibility-version=
--min-compatibility-version=1.36 --emulated-version=1.35
--min-compatibility-version=1.35 --emulated-version=1.35

# The lease.
--leader-elect-renew-deadline=12s
--leader-elect-renew-deadline=10s
--leader-elect-lease-duration=8s
--leader-elect-lease-duration=11s
--leader-elect-lease-duration=15500ms
--leader-elect-lease-duration=137s --leader-elect-renew-deadline=107s --leader-elect-retry-period=26s
--leader-elect-lease-duration=60s --leader-elect-renew-deadline=40s
--leader-elect-lease-duration=15s --leader-elect-renew-deadline=15s
--leader-elect-lease-duration=15s --leader-elect-renew-deadline=10s --leader-elect-retry-period=8s
--leader-elect-lease-duration=15s --leader-elect-renew-deadline=10s --leader-elect-retry-period=8334ms
--leader-elect-lease-duration=15s --leader-elect-renew-deadline=10s --leader-elect-retry-period=10s
--leader-elect-lease-duration=100ms --leader-elect-renew-deadline=50ms --leader-elect-retry-period=10ms
--leader-elect-lease-duration=3ns --leader-elect-renew-deadline=2ns --leader-elect-retry-period=1ns
--leader-elect-lease-duration=0s --leader-elect=false
--leader-elect-renew-deadline=-1s --leader-elect=false
--leader-elect-retry-period=0s --leader-elect=false
--leader-elect-resource-lock=endpoints --leader-elect=false
--leader-elect-resource-lock=configmapsleases
--leader-elect-resource-name=mine --leader-elect-resource-namespace=default
--leader-elect-resource-name= --leader-elect=false
--enable-leader-migration
--enable-leader-migration --leader-migration-config={migration}
--enable-leader-migration --leader-migration-config={beta}
--enable-leader-migration --leader-migration-config={nameless}
--enable-leader-migration --leader-migration-config={empty}
--enable-leader-migration --leader-migration-config={dir}/none
--leader-migration-config={dir}/none
--enable-leader-migration=false --leader-migration-config={migration}
--enable-leader-migration=perhaps

# Nodes.
--node-monitor-period=60s
--node-monitor-period=10m --node-monitor-grace-period=40s
--node-monitor-grace-period=1s --node-monitor-period=5s
--node-startup-grace-period=0s --node-monitor-grace-period=0s --node-monitor-period=0s

# Serving.
--secure-port=65536
--secure-port=-1
--secure-port=x
--secure-port={port} --bind-address={address}
--secure-port={port} --bind-address=127.0.0.1
--secure-port={port} --bind-address=localhost
--bind-address=
--bind-address=::
--bind-address=300.0.0.1
{serve} --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --tls-cert-file={cert}
{serve} --tls-private-key-file={key}
--tls-cert-file={cert}
--tls-cert-file={dir}/none --tls-private-key-file={dir}/none
{serve} --tls-cert-file={dir}/none --tls-private-key-file={dir}/none
{serve} --tls-cert-file={empty} --tls-private-key-file={empty}
{serve} --cert-dir={dir}/pair
{serve} --cert-dir={cert}
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-min-version=VersionTLS10
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-min-version=VersionTLS13
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-min-version=VersionSSL30
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-min-version=
--tls-min-version=VersionSSL30
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-cipher-suites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-cipher-suites=TLS_NONE
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-cipher-suites=
--tls-cipher-suites=TLS_NONE
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-curve-preferences=23,24,25,29,4588
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-curve-preferences=1
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-curve-preferences=70000
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-sni-cert-key={cert},{key}
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-sni-cert-key={cert},{key}:*.example.com,example.com
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --tls-sni-cert-key={dir}/none,{dir}/none
--tls-sni-cert-key={dir}/none,{dir}/none
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --http2-max-streams-per-connection=100 --disable-http2-serving --permit-port-sharing --permit-address-sharing
{serve} --tls-cert-file={cert} --tls-private-key-file={key} --http2-max-streams-per-connection=-1
{serve} --client-ca-file={cert} --requestheader-client-ca-file={cert} --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --client-ca-file={dir}/none --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --client-ca-file={empty} --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --requestheader-client-ca-file={dir}/none --tls-cert-file={cert} --tls-private-key-file={key}
--client-ca-file={dir}/none
--requestheader-client-ca-file={dir}/none
{serve} --authentication-kubeconfig={kubeconfig} --authentication-skip-lookup --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --authentication-kubeconfig={dir}/none --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --authorization-kubeconfig={dir}/none --tls-cert-file={cert} --tls-private-key-file={key}
--authentication-kubeconfig={dir}/none --authorization-kubeconfig={dir}/none
{serve} --authorization-kubeconfig={kubeconfig} --authorization-always-allow-paths=/metrics,/debug/* --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --authorization-kubeconfig={kubeconfig} --authorization-always-allow-paths=/a*b --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --authorization-always-allow-paths= --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --authorization-kubeconfig={kubeconfig} --authorization-webhook-cache-authorized-ttl=0s --authorization-webhook-cache-unauthorized-ttl=-1s --tls-cert-file={cert} --tls-private-key-file={key}
{serve} --authentication-kubeconfig={kubeconfig} --authentication-skip-lookup --authentication-token-webhook-cache-ttl=1m --tls-cert-file={cert} --tls-private-key-file={key}
--requestheader-uid-headers=X-Remote-Uid
--requestheader-uid-headers=X-Other
--requestheader-username-headers=X-User
--requestheader-allowed-names=a,' '
--requestheader-group-headers=' '

# Keys, certificates and templates. Files that are missing or wrong are not among them: they end
# kube-controller-manager as soon as it leads.
--pv-recycler-pod-template-filepath-hostpath= --pv-recycler-pod-template-filepath-nfs=
--cluster-signing-cert-file={cert}
--cluster-signing-key-file={key}
--cluster-signing-cert-file={cert} --cluster-signing-kubelet-serving-cert-file={cert} --cluster-signing-kubelet-serving-key-file={key}
--cluster-signing-kubelet-client-cert-file={cert}
--cluster-signing-kubelet-client-key-file={key}
--cluster-signing-legacy-unknown-cert-file={cert} --cluster-signing-legacy-unknown-key-file={key}
--cluster-signing-duration=1m --cluster-signing-cert-file={cert} --cluster-signing-key-file={key}
--service-account-private-key-file=
--service-account-private-key-file={key} --root-ca-file={cert}
--root-ca-file=

# Requests.
--kube-api-qps=0 --kube-api-burst=0
--kube-api-qps=-1 --kube-api-burst=-1
--kube-api-qps=50 --kube-api-burst=0
--kube-api-content-type=application/json
--kube-api-content-type=application/cbor
--kube-api-content-type=text/plain

# Metrics and logs.
--show-hidden-metrics-for-version=1.36
--show-hidden-metrics-for-version=1.37
--show-hidden-metrics-for-version=1.35
--disabled-metrics=workqueue_depth
--allow-metric-labels=workqueue_depth,name='a,b'
--allow-metric-labels-manifest={labels}
--allow-metric-labels-manifest={dir}/none
--allow-metric-labels-manifest={key}
--allow-metric-labels-manifest=
--logging-format=json
--logging-format=text --log-flush-frequency=0s
--logging-format=json --vmodule=a=1
--log-json-split-stream
--log-text-split-stream --feature-gates=LoggingAlphaOptions=true
--log-json-info-buffer-size=1Mi --log-json-split-stream --logging-format=json --feature-gates=LoggingAlphaOptions=true

# Networks of Nodes.
--service-cluster-ip-range=10.0.0.0/16,fd00::/108
--service-cluster-ip-range=10.0.0.0/16,fd00::/108,10.1.0.0/16
--service-cluster-ip-range=nonsense
--allocate-node-cidrs --cluster-cidr=nonsense --node-cidr-mask-size=200
--cloud-provider=aws
--cloud-provider=external
--cloud-provider=nonsense
--cidr-allocator-type=CloudAllocator
--cidr-allocator-type=
--attach-detach-reconcile-sync-period=999ms
--concurrent-service-syncs=2
--concurrent_rc_syncs=3
--concurrent-rc_syncs=3
`
