// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers/bootstrapsigner"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/controllers/csrapproving"
	"github.com/setpoint-io/setpoint/controllers/csrcleaner"
	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/controllers/legacytokencleaner"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/nodettl"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/rootcapublisher"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/controllers/serviceaccounttoken"
	"github.com/setpoint-io/setpoint/controllers/tainteviction"
	"github.com/setpoint-io/setpoint/controllers/tokencleaner"
	"github.com/setpoint-io/setpoint/controllers/ttlafterfinished"
)

// Options are those of all controllers together. The zero value is upstream's choice for
// each.
type Options struct {
	// Workers is how many keys a controller works on at a time, by its name. Without an
	// entry, or with 0, it is its default. Those that have but one key, a look at
	// everything, have but one.
	Workers map[string]int

	// ServiceAccountKey is the private key that signs the tokens of service
	// accounts, in PEM. The API server must know its public half. Empty: nobody
	// makes such tokens.
	ServiceAccountKey []byte

	// RootCA are the certificates, in PEM, by which Pods know the API server.
	// Empty: nobody tells them.
	RootCA []byte

	// SigningAuthorities say who signs certificates for which of Kubernetes' signers,
	// see csrsigning.Options. Empty: nobody does.
	SigningAuthorities map[string]csrsigning.Source

	// SigningDuration is how long a signed certificate lasts at most. 0 is a year.
	SigningDuration time.Duration

	// MaxEndpointsPerSlice and MaxMirroredPerSubset are those of
	// endpointslice.Options and endpointslicemirroring.Options.
	MaxEndpointsPerSlice, MaxMirroredPerSubset int

	// EndpointsBatchPeriod, EndpointSliceBatchPeriod and MirroringBatchPeriod are how long
	// endpoints-controller, endpointslice-controller and endpointslice-mirroring-controller
	// wait after a change, so that those that follow are written with it.
	EndpointsBatchPeriod, EndpointSliceBatchPeriod, MirroringBatchPeriod time.Duration

	// NamespaceSyncPeriod is how often a Namespace that is being deleted is looked at again,
	// whatever its controller waits for. 0 is never.
	NamespaceSyncPeriod time.Duration

	// LegacyTokenCleanUp is how long a service-account token of old is unused before it
	// is made invalid, and again before it is deleted. 0 is a year.
	LegacyTokenCleanUp time.Duration

	// NodeLifecycle is all that node-lifecycle-controller can be told but the number of
	// its workers, which is not read here.
	NodeLifecycle nodelifecycle.Options

	// TerminatedPods is how many Pods that have ended may stay. 0 is 12,500; below 0 all
	// may.
	TerminatedPods int

	// IgnorePodDeletionCost, OmitTerminatingReplicas and OnlyPreferClose have controllers
	// behave as upstream's do without the feature gates PodDeletionCost,
	// DeploymentReplicaSetTerminatingReplicas and PreferSameTrafficDistribution.
	IgnorePodDeletionCost, OmitTerminatingReplicas, OnlyPreferClose bool

	// OneServer says that the cluster has one API server: nobody has to be waited for
	// until all of them know that a namespace terminates.
	OneServer bool
}

// NotConfiguredError is the error for a controller that cannot work with the
// options that it was given. A manager leaves it out and runs the others.
type NotConfiguredError struct {
	Controller string
	Lacks      string // what is not there, such as "a private key for service accounts"
}

func (e *NotConfiguredError) Error() string {
	return fmt.Sprintf("%s is not configured: it lacks %s", e.Controller, e.Lacks)
}

// Entry is a controller that can be run.
type Entry struct {
	Name    string // as upstream calls it, such as "deployment-controller"
	Alias   string // short for Name, such as "deployment"; the same where there is none
	Summary string // what it does, in a few words

	// OffByDefault: "*" does not choose it; it has to be named.
	OffByDefault bool

	// Rights returns what the controller must be allowed to do, and nothing more, and
	// RightsIn what in single namespaces, by their names. Either may be nil; both are for
	// one that has not declared it.
	Rights   func() []rbacv1.PolicyRule
	RightsIn func() map[string][]rbacv1.PolicyRule

	// New makes the controller, with its informers and events from h. It does
	// not start it. The error is a *NotConfiguredError where o lacks something
	// without which the controller has no work.
	New func(h controller.Host, o Options) (controller.Runnable, error)
}

// Known returns all built-in controllers in the order of their names. The caller
// owns the result.
func Known() []Entry {
	all := []Entry{
		{
			Name: bootstrapsigner.Name, Alias: "bootstrapsigner", OffByDefault: true,
			Summary: "signs what new nodes read, with bootstrap tokens; if it is named", RightsIn: bootstrapsigner.Rights,
			New: func(h controller.Host, _ Options) (controller.Runnable, error) { return bootstrapsigner.New(h) },
		},
		{
			Name: clusterroleaggregation.Name, Alias: "clusterrole-aggregation",
			Summary: "fills ClusterRoles that are sums of others, as admin, edit and view",
			Rights:  clusterroleaggregation.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return clusterroleaggregation.New(h, clusterroleaggregation.Options{Workers: o.Workers[clusterroleaggregation.Name]})
			},
		},
		{
			Name: csrapproving.Name, Alias: "csrapproving",
			Summary: "approves the certificates of kubelets that may ask for them",
			Rights:  csrapproving.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return csrapproving.New(h, csrapproving.Options{Workers: o.Workers[csrapproving.Name]})
			},
		},
		{
			Name: csrcleaner.Name, Alias: "csrcleaner",
			Summary: "deletes CertificateSigningRequests that nobody needs any more",
			Rights:  csrcleaner.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return csrcleaner.New(h, csrcleaner.Options{Workers: o.Workers[csrcleaner.Name]})
			},
		},
		{
			Name: csrsigning.Name, Alias: "csrsigning",
			Summary: "signs the certificates that were asked for and approved",
			Rights:  csrsigning.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				if len(o.SigningAuthorities) == 0 {
					return nil, &NotConfiguredError{Controller: csrsigning.Name, Lacks: "a certificate authority to sign with"}
				}
				return csrsigning.New(h, csrsigning.Options{Workers: o.Workers[csrsigning.Name], Authorities: o.SigningAuthorities, Longest: o.SigningDuration})
			},
		},
		{
			Name: deployment.Name, Alias: "deployment",
			Summary: "rolls Deployments out and back, by way of ReplicaSets",
			Rights:  deployment.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return deployment.New(h, deployment.Options{Workers: o.Workers[deployment.Name], OmitTerminating: o.OmitTerminatingReplicas})
			},
		},
		{
			Name: endpoints.Name, Alias: "endpoint",
			Summary: "writes the Endpoints of Services that select Pods", Rights: endpoints.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return endpoints.New(h, endpoints.Options{Workers: o.Workers[endpoints.Name], BatchPeriod: o.EndpointsBatchPeriod})
			},
		},
		{
			Name: endpointslice.Name, Alias: "endpointslice",
			Summary: "writes the EndpointSlices of Services that select Pods", Rights: endpointslice.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return endpointslice.New(h, endpointslice.Options{
					Workers: o.Workers[endpointslice.Name], MaxEndpointsPerSlice: o.MaxEndpointsPerSlice, OnlyPreferClose: o.OnlyPreferClose,
					BatchPeriod: o.EndpointSliceBatchPeriod,
				})
			},
		},
		{
			Name: endpointslicemirroring.Name, Alias: "endpointslicemirroring",
			Summary: "copies Endpoints written by hand into EndpointSlices", Rights: endpointslicemirroring.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return endpointslicemirroring.New(h, endpointslicemirroring.Options{
					Workers: o.Workers[endpointslicemirroring.Name], MaxEndpointsPerSubset: o.MaxMirroredPerSubset, BatchPeriod: o.MirroringBatchPeriod,
				})
			},
		},
		{
			Name: garbagecollector.Name, Alias: "garbagecollector",
			Summary: "deletes objects whose owners are gone",
			Rights:  garbagecollector.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return garbagecollector.New(h, garbagecollector.Options{Workers: o.Workers[garbagecollector.Name]})
			},
		},
		{
			Name: legacytokencleaner.Name, Alias: "legacy-service-account-token-cleaner",
			Summary: "removes service-account tokens of old that nobody uses", Rights: legacytokencleaner.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return legacytokencleaner.New(h, legacytokencleaner.Options{CleanUpPeriod: o.LegacyTokenCleanUp})
			},
		},
		{
			Name: namespace.Name, Alias: "namespace",
			Summary: "empties Namespaces that are deleted, and lets them go",
			Rights:  namespace.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				settle := time.Duration(0)
				if o.OneServer {
					settle = -1
				}
				return namespace.New(h, namespace.Options{Workers: o.Workers[namespace.Name], Settle: settle, SyncPeriod: o.NamespaceSyncPeriod})
			},
		},
		{
			Name: nodelifecycle.Name, Alias: "nodelifecycle",
			Summary: "tells which Nodes are alive, and taints those that are not",
			Rights:  nodelifecycle.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				own := o.NodeLifecycle
				own.Workers = o.Workers[nodelifecycle.Name]
				return nodelifecycle.New(h, own)
			},
		},
		{
			Name: replicaset.Name, Alias: "replicaset",
			Summary: "keeps as many Pods as each ReplicaSet wants",
			Rights:  replicaset.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return replicaset.New(h, replicaset.Options{
					Workers: o.Workers[replicaset.Name], IgnoreDeletionCost: o.IgnorePodDeletionCost, OmitTerminating: o.OmitTerminatingReplicas,
				})
			},
		},
		{
			Name: rootcapublisher.Name, Alias: "root-ca-cert-publisher",
			Summary: "tells every Namespace the certificates of the API server",
			Rights:  rootcapublisher.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				if len(o.RootCA) == 0 {
					return nil, &NotConfiguredError{Controller: rootcapublisher.Name, Lacks: "the certificates of the API server"}
				}
				return rootcapublisher.New(h, rootcapublisher.Options{RootCA: o.RootCA, Workers: o.Workers[rootcapublisher.Name]})
			},
		},
		{
			Name: replicationcontroller.Name, Alias: "replicationcontroller",
			Summary: "keeps as many Pods as each ReplicationController wants",
			Rights:  replicationcontroller.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return replicationcontroller.New(h, replicationcontroller.Options{Workers: o.Workers[replicationcontroller.Name], IgnoreDeletionCost: o.IgnorePodDeletionCost})
			},
		},
		{
			Name: podgc.Name, Alias: "podgc",
			Summary: "removes Pods that nobody else will: orphans, too many ended ones",
			Rights:  podgc.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return podgc.New(h, podgc.Options{Workers: o.Workers[podgc.Name], TerminatedPodThreshold: o.TerminatedPods})
			},
		},
		{
			Name: tainteviction.Name, Alias: "taint-eviction-controller",
			Summary: "deletes Pods that do not tolerate a NoExecute taint",
			Rights:  tainteviction.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return tainteviction.New(h, tainteviction.Options{Workers: o.Workers[tainteviction.Name]})
			},
		},
		{
			Name: nodettl.Name, Alias: "ttl",
			Summary: "tells kubelets for how long they may keep Secrets and ConfigMaps",
			Rights:  nodettl.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return nodettl.New(h, nodettl.Options{Workers: o.Workers[nodettl.Name]})
			},
		},
		{
			Name: serviceaccount.Name, Alias: "serviceaccount",
			Summary: "makes the ServiceAccount default in every Namespace",
			Rights:  serviceaccount.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return serviceaccount.New(h, serviceaccount.Options{Workers: o.Workers[serviceaccount.Name]})
			},
		},
		{
			Name: serviceaccounttoken.Name, Alias: "serviceaccount-token",
			Summary: "fills Secrets with tokens of ServiceAccounts, and removes them", Rights: serviceaccounttoken.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				if len(o.ServiceAccountKey) == 0 {
					return nil, &NotConfiguredError{Controller: serviceaccounttoken.Name, Lacks: "a private key for service accounts"}
				}
				return serviceaccounttoken.New(h, serviceaccounttoken.Options{PrivateKey: o.ServiceAccountKey, RootCA: o.RootCA, Workers: o.Workers[serviceaccounttoken.Name]})
			},
		},
		{
			Name: tokencleaner.Name, Alias: "tokencleaner", OffByDefault: true,
			Summary: "deletes bootstrap tokens that have expired; if it is named", RightsIn: tokencleaner.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return tokencleaner.New(h, tokencleaner.Options{Workers: o.Workers[tokencleaner.Name]})
			},
		},
		{
			Name: ttlafterfinished.Name, Alias: "ttl-after-finished",
			Summary: "deletes Jobs some time after they have finished",
			Rights:  ttlafterfinished.Rights,
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return ttlafterfinished.New(h, ttlafterfinished.Options{Workers: o.Workers[ttlafterfinished.Name]})
			},
		},
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}
