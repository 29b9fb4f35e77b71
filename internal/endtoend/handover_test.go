// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

// managerLease is the one of both managers.
var managerLease = object.Key{Namespace: "kube-system", Name: "kube-controller-manager"}

// commandLine is one that both managers start with: all controllers, and the lease. The lease
// lasts longer than by default: kube-controller-manager ends where a busy machine keeps it from renewing it.
func commandLine(cluster *controlplanetest.Cluster) []string {
	files := cluster.Endpoints()
	return []string{
		"--kubeconfig", cluster.Kubeconfig, "--secure-port", "0", "--controllers", "*,bootstrapsigner,tokencleaner",
		"--leader-elect-lease-duration", "20s", "--leader-elect-renew-deadline", "18s", "--leader-elect-retry-period", "500ms",
		"--root-ca-file", files.CAFile, "--service-account-private-key-file", files.ServiceAccountKeyFile,
		"--cluster-signing-cert-file", files.CAFile, "--cluster-signing-key-file", files.CAKeyFile,
		"--allocate-node-cidrs", "--cluster-cidr", "10.128.0.0/10,fd5e:7a01::/48",
		"--kube-api-qps", "1000", "--kube-api-burst", "1000", autoscaling,
	}
}

// holder returns who holds the lease.
func holder(t *testing.T, cluster *controlplanetest.Cluster) string {
	t.Helper()
	lease, err := client.For[*coordinationv1.Lease](cluster.Client).Get(t.Context(), managerLease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// exhibit is an object of every kind that a server serves by default, in a namespace of its own.
type exhibit struct {
	t         *testing.T
	cluster   *controlplanetest.Cluster
	namespace string
	file      string
}

// show creates an exhibit. Its number is that of a range of addresses of its own.
func show(t *testing.T, cluster *controlplanetest.Cluster, number int) *exhibit {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "everything.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	e := &exhibit{t: t, cluster: cluster, namespace: cluster.Namespace(t), file: filepath.Join(t.TempDir(), "everything.yaml")}
	rendered := strings.NewReplacer("NS", e.namespace, "OCTET", strconv.Itoa(number)).Replace(string(text))
	if err := os.WriteFile(e.file, []byte(rendered), 0o600); err != nil { //nolint:gosec // a file of the test
		t.Fatal(err)
	}
	e.kubectl("create", "-f", e.file)
	e.kubectl("certificate", "approve", "jane-of-"+e.namespace)
	// The file has no request of a Pod: the API server wants one that was signed.
	if _, err := client.For[*certificatesv1.PodCertificateRequest](cluster.Client).Create(t.Context(), certrequesttest.Pod(t, e.namespace, "reader")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := cluster.Kubectl("delete", "-f", e.file, "-n", e.namespace, "--ignore-not-found", "--wait=false", "--grace-period=0", "--force"); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (e *exhibit) kubectl(args ...string) string {
	e.t.Helper()
	out, err := e.cluster.Kubectl(append(args, "-n", e.namespace)...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// objects are those that kubectl prints.
func (e *exhibit) objects(args ...string) []any {
	e.t.Helper()
	var list struct {
		Items []any `json:"items"`
	}
	if err := json.Unmarshal([]byte(e.kubectl(append(append([]string{"get"}, args...), "-o", "json")...)), &list); err != nil {
		e.t.Fatal(err)
	}
	return list.Items
}

// done waits until the controllers have seen to each object.
func (e *exhibit) done() {
	e.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(300 * time.Millisecond) {
		var missing []string
		there := map[string]bool{}
		for _, o := range e.objects(kept) {
			there[fmt.Sprint(valueAt(o, "kind"), " ", valueAt(o, "metadata.name"))] = true
		}
		for _, o := range e.objects("-f", e.file) {
			shows, _ := valueAt(o, "metadata.annotations.shows").(string)
			if orphaned(o) {
				continue
			}
			path, want, exact := strings.Cut(shows, "=")
			is := valueAt(o, path)
			if shows != "" && (is == nil || exact && fmt.Sprint(is) != want) {
				missing = append(missing, fmt.Sprintf("%v %v: %s is %v", valueAt(o, "kind"), valueAt(o, "metadata.name"), shows, is))
			}
			if makes, _ := valueAt(o, "metadata.annotations.makes").(string); makes != "" && !there[makes] {
				missing = append(missing, fmt.Sprintf("%v %v: no %s", valueAt(o, "kind"), valueAt(o, "metadata.name"), makes))
			}
		}
		if len(missing) == 0 {
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("after %s:\n%s", patience, strings.Join(missing, "\n"))
		}
	}
}

// orphaned reports whether Setpoint does not have the controller of an object yet.
func orphaned(o any) bool {
	by, _ := valueAt(o, "metadata.annotations.by").(string)
	return len(registry.Absent([]string{by})) > 0
}

// valueAt returns a field, by its path with dots, of an object as JSON, or nil.
func valueAt(o any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch in := o.(type) {
		case map[string]any:
			o = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				return nil
			}
			o = in[i]
		default:
			return nil
		}
	}
	return o
}

// kept are the kinds whose objects a change of the manager must not replace.
const kept = "pods,replicasets,controllerrevisions,jobs,services,endpoints,endpointslices,serviceaccounts,secrets,configmaps,persistentvolumeclaims,resourceclaims,nodes,clustertrustbundles,podcertificaterequests"

// identities are all objects of the exhibit, with what a replacement or a restart would change.
func (e *exhibit) identities() (all []string) {
	e.t.Helper()
	shown := e.objects("-f", e.file)
	later := map[any]bool{} // what controllers are to create that are not there yet
	for _, o := range shown {
		if orphaned(o) {
			later[valueAt(o, "metadata.annotations.makes")] = true
		}
	}
	for _, o := range append(shown, e.objects(kept)...) {
		name := fmt.Sprint(valueAt(o, "kind"), " ", valueAt(o, "metadata.name"))
		if orphaned(o) || later[name] {
			continue
		}
		identity := fmt.Sprint(name, " ", valueAt(o, "metadata.uid"))
		for _, field := range []string{"status.containerStatuses.0.restartCount", "spec.nodeName", "spec.volumeName", "spec.claimRef.uid", "spec.podCIDR",
			"status.certificate", "status.reservedFor.0.uid", "status.allocation.devices.results.0.device"} {
			if value := valueAt(o, field); value != nil {
				identity += fmt.Sprint(" ", field, " ", value)
			}
		}
		all = append(all, identity)
	}
	all = append(all, e.attachments()...)
	slices.Sort(all)
	if len(all) < 30 {
		e.t.Fatalf("%d objects, which is too few: %q", len(all), all)
	}
	return all
}

// attachments are the VolumeAttachments of the exhibit's volumes. The cluster has others, which
// drains move.
func (e *exhibit) attachments() (all []string) {
	e.t.Helper()
	mine := map[any]bool{}
	for _, claim := range e.objects("persistentvolumeclaims") {
		mine[valueAt(claim, "spec.volumeName")] = true
	}
	for _, o := range e.objects("volumeattachments") {
		if volume := valueAt(o, "spec.source.persistentVolumeName"); volume != nil && mine[volume] {
			all = append(all, fmt.Sprint("VolumeAttachment ", valueAt(o, "metadata.name"), " ", valueAt(o, "metadata.uid"),
				" attached ", valueAt(o, "status.attached"), " node ", valueAt(o, "spec.nodeName")))
		}
	}
	if len(all) != exhibitVolumes {
		e.t.Fatalf("the exhibit has %d VolumeAttachments, want %d: %q", len(all), exhibitVolumes, all)
	}
	return all
}

// exhibitVolumes is how many volumes of an exhibit are attached: those of the StatefulSet.
const exhibitVolumes = 2

// A live cluster with an object of every kind that a server serves by default goes from kube-controller-manager to Setpoint and
// back. Both have the same command line, and the lease decides which of them works. Each change
// is in the middle of all works.
func TestALiveClusterGoesFromKubeControllerManagerToSetpointAndBack(t *testing.T) {
	cluster := onShared(t)
	m := startManager(t, "kube-controller-manager", commandLine(cluster)...)
	leads := func(what string, before string) string {
		t.Helper()
		until(t, what+" to lead", func() bool { h := holder(t, cluster); return h != "" && h != before })
		return holder(t, cluster)
	}
	leader := leads("kube-controller-manager", "")
	s := newSite(t, cluster)
	s.theirs.Store(true)
	exhibits := []*exhibit{show(t, cluster, 1)}
	exhibits[0].done()
	s.done()
	for i, turn := range []struct {
		name, binary string
		args         []string
	}{
		{"Setpoint", "setpoint", append([]string{"manager", "--log-format", "text"}, commandLine(cluster)...)},
		{"kube-controller-manager", "kube-controller-manager", commandLine(cluster)},
	} {
		t.Logf("it is the turn of %s", turn.name)
		var before [][]string
		for _, e := range exhibits {
			before = append(before, e.identities())
		}
		next := startManager(t, turn.binary, turn.args...)
		s.middle()
		s.theirs.Store(true)
		m.stop()
		m, leader = next, leads(turn.name, leader)
		s.done()
		s.theirs.Store(turn.binary == "kube-controller-manager")
		// It has seen to all that was there when it has seen to the same once more.
		exhibits = append(exhibits, show(t, cluster, i+2))
		for j, e := range exhibits {
			e.done()
			if j < len(before) {
				if after := e.identities(); !slices.Equal(before[j], after) {
					t.Errorf("%s: gone are %q, and new are %q", turn.name, gone(before[j], after), gone(after, before[j]))
				}
			}
		}
	}
	m.stop()
}
