// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/attachdetach"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/controllers/cronjob"
	"github.com/setpoint-io/setpoint/controllers/csrapproving"
	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/controllers/daemonset"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/devicetainteviction"
	"github.com/setpoint-io/setpoint/controllers/disruption"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/controllers/horizontalpodautoscaler"
	"github.com/setpoint-io/setpoint/controllers/job"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodeipam"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/nodettl"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/resourceclaim"
	"github.com/setpoint-io/setpoint/controllers/resourcequota"
	"github.com/setpoint-io/setpoint/controllers/rootcapublisher"
	"github.com/setpoint-io/setpoint/controllers/serviceaccounttoken"
	"github.com/setpoint-io/setpoint/controllers/servicecidr"
	"github.com/setpoint-io/setpoint/controllers/statefulset"
	"github.com/setpoint-io/setpoint/controllers/tainteviction"
	"github.com/setpoint-io/setpoint/controllers/ttlafterfinished"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// reaper deletes objects at the last moment: when a write of them has left the
// controller and has not reached the server.
type reaper struct {
	*cluster
	pattern *regexp.Regexp // of the method and the path of the writes

	mu      sync.Mutex
	answers int // that the controller has had to these writes
}

// subresource is what a path ends in that is no object's own.
var subresource = regexp.MustCompile(`/(status|approval|finalize|scale)$`)

func (r *reaper) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if !r.pattern.MatchString(request.Method + " " + request.URL.Path) {
			return next.RoundTrip(request)
		}
		path := subresource.ReplaceAllString(request.URL.Path, "")
		if err := r.remove(request.Context(), path); err != nil {
			return nil, err
		}
		response, err := next.RoundTrip(request)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answers++
		return response, err
	})
}

// remove deletes what has a path, as administrator and at once.
func (r *reaper) remove(ctx context.Context, path string) error {
	if path == "/api/v1/namespaces/"+r.namespace {
		return r.finalize(ctx)
	}
	transport, err := rest.TransportFor(r.Config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, r.Config.Host+path+"?gracePeriodSeconds=0&propagationPolicy=Background", nil) //nolint:gosec // the test's own server
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// finalize lets the namespace go, whatever is in it.
func (r *reaper) finalize(ctx context.Context) error {
	namespaces := client.For[*corev1.Namespace](r.Client)
	ns, err := namespaces.Get(ctx, object.Key{Name: r.namespace})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	ns.Spec.Finalizers = nil
	_, err = namespaces.Sub("finalize").Update(ctx, object.KeyOf(ns), ns)
	return err
}

// count returns how many writes have found nothing.
func (r *reaper) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const webPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
	"spec": {"nodeName": "%s", "containers": [{"name": "main", "image": "web"}]}}`

// webDaemonSet has Pods on one node.
const webDaemonSet = `{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
	"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"nodeSelector": {"kubernetes.io/hostname": "node-0"}, "containers": [{"name": "main", "image": "web"}]}}}}`

// webJob is a Job whose Pod finds no node.
const webJob = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}, "spec": {"template": {"spec": {
	"restartPolicy": "Never", "nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "web"}]}}}}`

const isRunning = `{"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "Ready", "status": "True"}]}}`

func (c *cluster) runningPod(node string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(webPod, node))
	c.status("pod/web", isRunning)
}

// finishedJob makes a Job that has finished, and is not to be kept.
func (c *cluster) finishedJob(name string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": %q}, "spec": {"ttlSecondsAfterFinished": 0,
		"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "web"}]}}}}`, name))
	c.status("job/"+name, `{"status": {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z", "succeeded": 1, "ready": 0, "terminating": 0,
		"uncountedTerminatedPods": {}, "conditions": [
			{"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
}

// dueCronJob makes a CronJob whose last start was a year ago, so that a Job starts at once. The next
// one starts on the first of January.
func (c *cluster) dueCronJob(name string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": %q}, "spec": {
		"schedule": "0 0 1 1 *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": {"template": {"spec": {
		"restartPolicy": "Never", "containers": [{"name": "main", "image": "web"}]}}}}}}`, name))
	c.status("cronjob/"+name, fmt.Sprintf(`{"status": {"lastScheduleTime": %q}}`, time.Now().AddDate(-1, 0, 0).UTC().Format(time.RFC3339)))
}

// scaled makes a ReplicaSet of a size, and a HorizontalPodAutoscaler that wants three replicas.
func (c *cluster) scaled(replicas int) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {"replicas": %d,
		"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}}}`, replicas))
	c.manifest(`{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
		"spec": {"minReplicas": 3, "maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}}}`)
}

// node makes a Node without a machine, for as long as the test.
func (c *cluster) node(name, spec string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}, "spec": %s}`, name, spec))
	c.t.Cleanup(func() {
		if err := c.remove("node", name); err != nil {
			c.t.Error(err)
		}
	})
}

// request asks for a certificate and approves of it if told to.
func (c *cluster) request(name, signer string, approved bool) {
	c.t.Helper()
	csr, _ := certrequesttest.Object(c.t, name, signer, certrequesttest.Node(name), certrequesttest.ClientUsages...)
	if _, err := client.For[*certificatesv1.CertificateSigningRequest](c.Client).Create(c.t.Context(), csr); err != nil {
		c.t.Fatal(err)
	}
	if approved {
		c.kubectl("certificate", "approve", name)
	}
}

// ofControlPlane are those in the control plane who tell of what goes: the scheduler when it
// is at a Pod, and the API server when it has looked at a Service before its IPAddress.
// Source: k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller and
// .../portallocator/controller.
var ofControlPlane = []string{"default-scheduler", "ipallocator-repair-controller", "portallocator-repair-controller"}

// What goes while a controller writes it is as it should be: nothing is left to be
// written. It is no failure, of which somebody would be told in the log or by an event.
func TestWhatGoesWhileItIsWrittenIsNoFailure(t *testing.T) {
	files := shared.Get(t).Endpoints()
	key, err := os.ReadFile(files.ServiceAccountKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	const set = `{"apiVersion": "%s", "kind": "%s", "metadata": {"name": "web"}, "spec": {"replicas": %d, "selector": %s,
		"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}}}`
	replicaSet := fmt.Sprintf(set, "apps/v1", "ReplicaSet", 2, `{"matchLabels": {"app": "web"}}`)
	deployed := fmt.Sprintf(set, "apps/v1", "Deployment", 2, `{"matchLabels": {"app": "web"}}`)
	replicationController := fmt.Sprintf(set, "v1", "ReplicationController", 2, `{"app": "web"}`)
	const service = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": %s, "ports": [{"port": 80}]}}`
	const node = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}, "spec": %s}`
	hasty := nodelifecycle.Defaults()
	hasty.NodeMonitorPeriod, hasty.NodeStartupGracePeriod = 50*time.Millisecond, time.Second

	for _, test := range []struct {
		name       string
		controller managertest.Make
		writes     string         // those that come too late; NS is the namespace
		begin      func(*cluster) // makes what the controller has to do with
		change     func(*cluster) // may have it write again
	}{
		{
			name: "status of a Deployment", controller: managertest.Making(deployment.New, deployment.Defaults()),
			writes: `PUT .*/NS/deployments/web/status`, begin: func(c *cluster) { c.manifest(deployed) },
		}, {
			name: "ReplicaSet of a Deployment", controller: managertest.Making(deployment.New, deployment.Defaults()),
			writes: `PATCH .*/NS/replicasets/`, begin: func(c *cluster) {
				c.manifest(deployed)
				c.eventually(c.count("replicasets", 1))
			},
			change: func(c *cluster) { c.kubectl("scale", "deployment/web", "--replicas=3") },
		}, {
			name: "Deployment that is rolled back", controller: managertest.Making(deployment.New, deployment.Defaults()),
			writes: `PUT .*/NS/deployments/web$`, begin: func(c *cluster) {
				c.manifest(deployed)
				c.eventually(c.count("replicasets", 1))
				c.kubectl("set", "image", "deployment/web", "main=web:2")
				c.eventually(c.count("replicasets", 2))
			},
			change: func(c *cluster) { c.kubectl("annotate", "deployment/web", "deprecated.deployment.rollback.to=0") },
		}, {
			name: "status of a ReplicaSet", controller: managertest.Making(replicaset.New, replicaset.Defaults()),
			writes: `PUT .*/NS/replicasets/web/status`, begin: func(c *cluster) { c.manifest(replicaSet) },
		}, {
			name: "Pod of a ReplicaSet", controller: managertest.Making(replicaset.New, replicaset.Defaults()),
			writes: `DELETE .*/NS/pods/web-`, begin: func(c *cluster) {
				c.manifest(replicaSet)
				c.eventually(c.count("pods", 2))
			},
			change: func(c *cluster) { c.kubectl("scale", "rs/web", "--replicas=0") },
		}, {
			name: "Pod that is released", controller: managertest.Making(replicaset.New, replicaset.Defaults()),
			writes: `PATCH .*/NS/pods/web-`, begin: func(c *cluster) {
				c.manifest(replicaSet)
				c.eventually(c.count("pods", 2))
			},
			change: func(c *cluster) { c.kubectl("label", "pods", "--all", "app=quarantine", "--overwrite") },
		}, {
			name: "Pod that is adopted", controller: managertest.Making(replicaset.New, replicaset.Defaults()),
			writes: `PATCH .*/NS/pods/web$`, begin: func(c *cluster) {
				c.manifest(fmt.Sprintf(webPod, "nowhere"))
				c.manifest(replicaSet)
			},
		}, {
			name: "status of a ReplicationController", controller: managertest.Making(replicationcontroller.New, replicationcontroller.Defaults()),
			writes: `PUT .*/NS/replicationcontrollers/web/status`, begin: func(c *cluster) { c.manifest(replicationController) },
		}, {
			name: "conditions of a Namespace", controller: managertest.Making(namespace.New, namespace.Options{Workers: 10, Kinds: 16}),
			writes: `PUT /api/v1/namespaces/NS/status`, begin: func(c *cluster) {
				c.manifest(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/held"]}}`)
				c.kubectl("delete", "namespace", c.namespace, "--wait=false")
			},
		}, {
			name: "Namespace that is let go", controller: managertest.Making(namespace.New, namespace.Options{Workers: 10, Kinds: 16}),
			writes: `PUT /api/v1/namespaces/NS/finalize`, begin: func(c *cluster) { c.kubectl("delete", "namespace", c.namespace, "--wait=false") },
		}, {
			name: "taints of a Node", controller: managertest.Making(nodelifecycle.New, nodelifecycle.Defaults()),
			writes: `PATCH /api/v1/nodes/goes-taints$`,
			begin:  func(c *cluster) { c.manifest(fmt.Sprintf(node, "goes-taints", `{"unschedulable": true}`)) },
		}, {
			name: "conditions of a Node", controller: managertest.Making(nodelifecycle.New, hasty),
			writes: `PATCH /api/v1/nodes/goes-conditions/status`,
			begin:  func(c *cluster) { c.manifest(fmt.Sprintf(node, "goes-conditions", `{}`)) },
		}, {
			name: "range of a Node", controller: managertest.Making(nodeipam.New, nodeipam.Options{Workers: 30, ClusterCIDR: "10.128.0.0/10,fd5e:7a01::/48"}),
			writes: `PATCH /api/v1/nodes/goes-range$`, begin: func(c *cluster) { c.manifest(fmt.Sprintf(node, "goes-range", `{}`)) },
		}, {
			name: "attached volumes of a Node", controller: managertest.Making(attachdetach.New, attachdetach.Defaults()),
			writes: `PATCH /api/v1/nodes/goes-attached/status`, begin: func(c *cluster) { c.attachments("goes-attached") },
		}, {
			name: "VolumeAttachment that is deleted", controller: managertest.Making(attachdetach.New, attachdetach.Defaults()),
			writes: `DELETE .*/volumeattachments/` + attachdetach.AttachmentName("left-goes-detached", "disk.example.com", "goes-detached"),
			begin:  func(c *cluster) { c.attachments("goes-detached") },
		}, {
			name: "finalizer of a ServiceCIDR", controller: managertest.Making(servicecidr.New, servicecidr.Defaults()),
			writes: `PATCH .*/servicecidrs/goes-cidr$`, begin: func(c *cluster) {
				c.manifest(`{"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "goes-cidr"}, "spec": {"cidrs": ["fd00:5c::/112"]}}`)
			},
		}, {
			name: "annotation of a Node", controller: managertest.Making(nodettl.New, nodettl.Defaults()),
			writes: `PATCH /api/v1/nodes/goes-ttl$`, begin: func(c *cluster) { c.manifest(fmt.Sprintf(node, "goes-ttl", `{}`)) },
		}, {
			name: "orphan that has failed", controller: managertest.Making(podgc.New, podgc.Options{Workers: 16, Period: 50 * time.Millisecond, Quarantine: 50 * time.Millisecond}),
			writes: `PATCH .*/NS/pods/web/status`, begin: func(c *cluster) { c.manifest(fmt.Sprintf(webPod, "nowhere")) },
		}, {
			name: "orphan that is deleted", controller: managertest.Making(podgc.New, podgc.Options{Workers: 16, Period: 50 * time.Millisecond, Quarantine: 50 * time.Millisecond}),
			writes: `DELETE .*/NS/pods/web$`, begin: func(c *cluster) { c.manifest(fmt.Sprintf(webPod, "nowhere")) },
		}, {
			name: "Pod that will be evicted", controller: managertest.Making(tainteviction.New, tainteviction.Defaults()),
			writes: `PATCH .*/NS/pods/web/status`, begin: func(c *cluster) {
				c.node("goes-evicted", `{"taints": [{"key": "a", "effect": "NoExecute"}]}`)
				c.manifest(fmt.Sprintf(webPod, "goes-evicted"))
			},
		}, {
			name: "Pod that is evicted", controller: managertest.Making(tainteviction.New, tainteviction.Defaults()),
			writes: `DELETE .*/NS/pods/web$`, begin: func(c *cluster) {
				c.node("goes-evicted", `{"taints": [{"key": "a", "effect": "NoExecute"}]}`)
				c.manifest(fmt.Sprintf(webPod, "goes-evicted"))
			},
		}, {
			name: "Endpoints that change", controller: managertest.Making(endpoints.New, endpoints.Defaults()),
			writes: `PUT .*/NS/endpoints/web`, begin: func(c *cluster) {
				c.manifest(fmt.Sprintf(service, `{"app": "web"}`))
				c.eventually(c.count("endpoints", 1))
			},
			change: func(c *cluster) { c.runningPod("node-0") },
		}, {
			name: "EndpointSlice that changes", controller: managertest.Making(endpointslice.New, endpointslice.Defaults()),
			writes: `PUT .*/NS/endpointslices/web-`, begin: func(c *cluster) {
				c.manifest(fmt.Sprintf(service, `{"app": "web"}`))
				c.eventually(c.count("endpointslices", 1))
			},
			change: func(c *cluster) { c.runningPod("node-0") },
		}, {
			name: "mirrored EndpointSlice that changes", controller: managertest.Making(endpointslicemirroring.New, endpointslicemirroring.Defaults()),
			writes: `PUT .*/NS/endpointslices/web-`, begin: func(c *cluster) {
				c.manifest(fmt.Sprintf(service, `{}`))
				c.manifest(`{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]}`)
				c.eventually(c.count("endpointslices", 1))
			},
			change: func(c *cluster) {
				c.kubectl("patch", "endpoints/web", "--patch", `{"subsets": [{"addresses": [{"ip": "192.0.2.2"}], "ports": [{"port": 80}]}]}`)
			},
		}, {
			name: "request that is approved", controller: managertest.Making(csrapproving.New, csrapproving.Defaults()),
			writes: `PUT .*/certificatesigningrequests/goes-approved/approval`,
			begin: func(c *cluster) {
				c.request("goes-approved", certificatesv1.KubeAPIServerClientKubeletSignerName, false)
			},
		}, {
			name:       "request that is signed",
			controller: managertest.Making(csrsigning.New, csrsigning.Options{Workers: 5, Longest: time.Hour, Authorities: csrsigning.ForAll(csrsigning.Files(files.CAFile, files.CAKeyFile))}),
			writes:     `PUT .*/certificatesigningrequests/goes-signed/status`,
			begin: func(c *cluster) {
				c.request("goes-signed", certificatesv1.KubeAPIServerClientKubeletSignerName, true)
			},
		}, {
			name: "ClusterRole that is a sum", controller: managertest.Making(clusterroleaggregation.New, clusterroleaggregation.Defaults()),
			writes: `PATCH .*/clusterroles/goes-sum`, begin: func(c *cluster) {
				c.manifest(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "goes-part", "labels": {"goes": "in"}},
					"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}`)
				c.manifest(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "goes-sum"},
					"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"goes": "in"}}]}}`)
			},
		}, {
			name:       "token that is filled",
			controller: managertest.Making(serviceaccounttoken.New, serviceaccounttoken.Options{Workers: 5, PrivateKey: key}),
			writes:     `PUT .*/NS/secrets/web`,
			begin: func(c *cluster) {
				c.manifest(`{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
					"metadata": {"name": "web", "annotations": {"kubernetes.io/service-account.name": "default"}}}`)
			},
		}, {
			name:       "token of nobody",
			controller: managertest.Making(serviceaccounttoken.New, serviceaccounttoken.Options{Workers: 5, PrivateKey: key}),
			writes:     `DELETE .*/NS/secrets/web`,
			begin: func(c *cluster) {
				c.manifest(`{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
					"metadata": {"name": "web", "annotations": {"kubernetes.io/service-account.name": "nobody"}}}`)
			},
		}, {
			name: "certificates that are mended", controller: managertest.Making(rootcapublisher.New, rootcapublisher.Options{Workers: 1, RootCA: []byte("a")}),
			writes: `PUT .*/NS/configmaps/kube-root-ca.crt`,
			begin:  func(c *cluster) { c.eventually(c.count("configmaps", 1)) },
			change: func(c *cluster) {
				c.kubectl("patch", "configmap", "kube-root-ca.crt", "--patch", `{"data": {"ca.crt": "b"}}`)
			},
		}, {
			name: "Job that has finished", controller: managertest.Making(ttlafterfinished.New, ttlafterfinished.Defaults()),
			writes: `DELETE .*/NS/jobs/web`, begin: func(c *cluster) {
				c.finishedJob("web")
			},
		}, {
			name: "status of a PodDisruptionBudget", controller: managertest.Making(disruption.New, disruption.Defaults()),
			writes: `PUT .*/NS/poddisruptionbudgets/web/status`, begin: func(c *cluster) {
				c.manifest(fmt.Sprintf(webPod, "nowhere"))
				c.manifest(`{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}`)
			},
		}, {
			name: "status of a ResourceQuota", controller: managertest.Making(resourcequota.New, resourcequota.Defaults()),
			writes: `PUT .*/NS/resourcequotas/web/status`, begin: func(c *cluster) {
				c.manifest(`{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "web"}, "spec": {"hard": {"pods": "10"}}}`)
			},
		}, {
			name: "status of a DaemonSet", controller: managertest.Making(daemonset.New, daemonset.Defaults()),
			writes: `PUT .*/NS/daemonsets/web/status`, begin: func(c *cluster) {
				c.manifest(webDaemonSet)
			},
		}, {
			name: "Pod of a DaemonSet that is replaced", controller: managertest.Making(daemonset.New, daemonset.Defaults()),
			writes: `DELETE .*/NS/pods/web-`, begin: func(c *cluster) {
				c.manifest(webDaemonSet)
				c.eventually(c.count("pods", 1))
			},
			change: func(c *cluster) { c.kubectl("set", "image", "daemonset/web", "main=web:2") },
		}, {
			name: "status of a Job", controller: managertest.Making(job.New, job.Defaults()),
			writes: `PUT .*/NS/jobs/web/status`, begin: func(c *cluster) { c.manifest(webJob) },
		}, {
			name: "Pods of a Job that is suspended", controller: managertest.Making(job.New, job.Defaults()),
			writes: `DELETE .*/NS/pods/web-`, begin: func(c *cluster) {
				c.manifest(webJob)
				c.eventually(c.count("pods", 1))
			},
			change: func(c *cluster) { c.kubectl("patch", "job/web", "--patch", `{"spec": {"suspend": true}}`) },
		}, {
			name: "status of a StatefulSet", controller: managertest.Making(statefulset.New, statefulset.Defaults()),
			writes: `PUT .*/NS/statefulsets/web/status`, begin: func(c *cluster) { c.statefulSet("web") },
		}, {
			name: "status of a CronJob", controller: managertest.Making(cronjob.New, cronjob.Defaults()),
			writes: `PUT .*/NS/cronjobs/web/status`, begin: func(c *cluster) { c.dueCronJob("web") },
		}, {
			name: "status of a HorizontalPodAutoscaler", controller: managertest.Making(horizontalpodautoscaler.New, horizontalpodautoscaler.Defaults()),
			writes: `PUT .*/NS/horizontalpodautoscalers/web/status`, begin: func(c *cluster) { c.scaled(0) },
		}, {
			name: "scale of a target", controller: managertest.Making(horizontalpodautoscaler.New, horizontalpodautoscaler.Defaults()),
			writes: `PUT .*/NS/replicasets/web/scale`, begin: func(c *cluster) { c.scaled(1) },
		}, {
			name: "Pod whose device is broken", controller: managertest.Making(devicetainteviction.New, devicetainteviction.Defaults()),
			writes: `DELETE .*/NS/pods/web`, begin: func(c *cluster) {
				c.brokenDevice()
				c.podWithDevice("web")
			},
		}, {
			name: "status of a DeviceTaintRule", controller: managertest.Making(devicetainteviction.New, devicetainteviction.Defaults()),
			writes: `PATCH .*/devicetaintrules/NS/status`, begin: func(c *cluster) { c.rule(c.namespace) },
		}, {
			name: "Pod that gets a claim", controller: managertest.Making(resourceclaim.New, resourceclaim.Defaults()),
			writes: `PATCH .*/NS/pods/web/status`, begin: func(c *cluster) {
				c.claimTemplate()
				c.manifest(claimingPod)
			},
		}, {
			name: "claim of a Pod that has ended", controller: managertest.Making(resourceclaim.New, resourceclaim.Defaults()),
			writes: `PUT .*/NS/resourceclaims/of-web/status`, begin: func(c *cluster) { c.claimOfEndedPod("web") },
		}, {
			name: "claim that is deleted", controller: managertest.Making(resourceclaim.New, resourceclaim.Defaults()),
			writes: `DELETE .*/NS/resourceclaims/of-web`, begin: func(c *cluster) { c.claimOfEndedPod("web") },
		}, {
			name: "dependent whose owner is gone", controller: managertest.Making(garbagecollector.New, garbagecollector.Defaults()),
			writes: `DELETE .*/NS/configmaps/web`, begin: func(c *cluster) {
				c.manifest(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web",
					"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "8a1d3a7e-0000-4000-8000-000000000000"}]}}`)
			},
		},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			c := &cluster{Cluster: shared.Get(t), t: t}
			c.namespace = c.Namespace(t)
			r := &reaper{cluster: c, pattern: regexp.MustCompile("^" + strings.ReplaceAll(test.writes, "NS", c.namespace))}
			config := rest.CopyConfig(c.Config)
			config.Wrap(r.wrap)
			p := managertest.Run(t, config, test.controller)
			test.begin(c)
			if test.change != nil {
				test.change(c)
			}
			controlplanetest.Eventually(t, "a write that comes too late: "+test.writes, func() bool { return r.count() > 0 })
			p.Stop() // after the run that wrote
			for _, line := range p.Warnings() {
				t.Errorf("the log says: %s", line)
			}
			told := read[struct {
				Items []struct{ Type, Reason, Note, ReportingController string }
			}](c, "events.events.k8s.io")
			for _, e := range told.Items {
				if e.Type == "Warning" && !slices.Contains(ofControlPlane, e.ReportingController) {
					t.Errorf("an event says: %s: %s", e.Reason, e.Note)
				}
			}
		})
	}
}
