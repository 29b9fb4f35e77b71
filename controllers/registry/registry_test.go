// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/manager"
)

func TestSelectUnderstandsTheSyntaxOfKubeControllerManager(t *testing.T) {
	const (
		d = "deployment-controller"
		n = "node-lifecycle-controller"
		r = "replicaset-controller"
	)
	var all []string
	for _, d := range Known() {
		if !d.OffByDefault {
			all = append(all, d.Name)
		}
	}
	with := func(names ...string) []string { return slices.Sorted(slices.Values(append(names, all...))) }
	without := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == name })
	}
	tests := []struct {
		name   string
		choice string
		want   []string
	}{
		{"all", "*", all},
		{"one by its name", r, []string{r}},
		{"one by its short name", "replicaset", []string{r}},
		{"in the order of names", "replicaset,deployment", []string{d, r}},
		{"all but one", "*,-nodelifecycle", without(n)},
		{"all but one, said before", "-nodelifecycle,*", without(n)},
		{"the first mention counts", "deployment,-deployment-controller", []string{d}},
		{"the first mention counts when it is a no", "-deployment,deployment,replicaset", []string{r}},
		{"with those that are off by default", "*,bootstrapsigner,tokencleaner", with("bootstrap-signer-controller", "token-cleaner-controller")},
		{"one that is off by default", "token-cleaner-controller", []string{"token-cleaner-controller"}},
		{"twice is once", "deployment,deployment-controller", []string{d}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			chosen, err := Select(Known(), strings.Split(test.choice, ","))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, d := range chosen {
				names = append(names, d.Name)
			}
			if !slices.Equal(names, test.want) {
				t.Errorf("%s chooses %v, want %v", test.choice, names, test.want)
			}
		})
	}
}

func TestSelectNamesTheNearestOfAnUnknownController(t *testing.T) {
	tests := []struct{ name, nearest string }{
		{"deploymnet", "deployment-controller"},
		{"replica-set", "replicaset-controller"},
		{"-node-lifecycle", "node-lifecycle-controller"},
		{"serviceacount-controller", "serviceaccount-controller"},
		{"Deployment", "deployment-controller"},
	}
	for _, test := range tests {
		_, err := Select(Known(), []string{"*", test.name})
		var unknown *UnknownError
		if !errors.As(err, &unknown) {
			t.Fatalf("%s: %v", test.name, err)
		}
		if unknown.Nearest != test.nearest {
			t.Errorf("%s is nearest to %s, want %s", test.name, unknown.Nearest, test.nearest)
		}
	}
}

func TestSelectRefusesToChooseNothing(t *testing.T) {
	for _, choice := range [][]string{nil, {"-deployment"}, {"-deployment", "-replicaset"}} {
		if _, err := Select(Known(), choice); !errors.Is(err, ErrNothingSelected) {
			t.Errorf("%q: %v", choice, err)
		}
	}
}

// everything is what every controller can be made with.
func everything(t *testing.T) controllers.Cluster {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	all := controllers.Cluster{ServiceAccountKey: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true}
	if der, err = x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	all.RootCA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	files := controllers.KeyFiles{Cert: filepath.Join(t.TempDir(), "ca.crt"), Key: filepath.Join(t.TempDir(), "ca.key")}
	if err := errors.Join(os.WriteFile(files.Cert, all.RootCA, 0o600), os.WriteFile(files.Key, all.ServiceAccountKey, 0o600)); err != nil {
		t.Fatal(err)
	}
	all.Signing = map[string]controllers.KeyFiles{}
	for _, signer := range csrsigning.Signers() {
		all.Signing[signer] = files
	}
	return all
}

// switchOn sets the flags without which a controller is not started by default.
func switchOn(t *testing.T, d *controllers.Descriptor) {
	t.Helper()
	if d.StoppedBy() == nil {
		return
	}
	for _, f := range d.Flags {
		switch f.Name {
		case "allocate-node-cidrs":
			*f.Into.(*bool) = true
		case "cluster-cidr":
			*f.Into.(*string) = "10.244.0.0/16"
		}
	}
	if f := d.StoppedBy(); f != nil {
		t.Fatalf("%s is stopped by %s", d.Name, f)
	}
}

func TestAControllerThatLacksWhatItNeedsSaysSo(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	lacking := 0
	for _, d := range Known() {
		d.Learn(controllers.Cluster{})
		switchOn(t, d)
		_, err := d.New(mgr)
		if (err != nil) != (d.Lacks() != "") {
			t.Errorf("%s lacks %q, and New says %v", d.Name, d.Lacks(), err)
		}
		if err != nil {
			lacking++
		}
	}
	if lacking != 4 {
		t.Errorf("%d controllers lack something, want 4", lacking)
	}
}

func TestEveryControllerCanBeMadeAndHasTheNameOfItsDescriptor(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	cluster := everything(t)
	for _, d := range Known() {
		d.Learn(cluster)
		switchOn(t, d)
		c, err := d.New(mgr)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name() != d.Name {
			t.Errorf("the descriptor of %s makes %s", d.Name, c.Name())
		}
		if d.Summary == "" {
			t.Errorf("%s has no summary", d.Name)
		}
		workers := reflect.ValueOf(d.Options).Elem().FieldByName("Workers")
		if !workers.IsValid() {
			continue // it has one key
		}
		for _, n := range []int64{0, -1} {
			workers.SetInt(n)
			if _, err := d.New(mgr); err == nil {
				t.Errorf("%s can be made with %d workers", d.Name, n)
			}
		}
	}
}

func TestNoNameIsTwoControllers(t *testing.T) {
	seen := map[string]string{}
	for _, d := range Known() {
		for _, name := range []string{d.Name, d.Alias} {
			// A controller that is younger than short names has none.
			if other, twice := seen[name]; twice && other != d.Name {
				t.Errorf("%s is %s and %s", name, other, d.Name)
			}
			seen[name] = d.Name
		}
	}
}

// A process that changes options does not change those of another list.
func TestEachListHasOptionsOfItsOwn(t *testing.T) {
	one, other := Known(), Known()
	for i := range one {
		if one[i].Options == other[i].Options && reflect.TypeOf(one[i].Options).Elem().Size() > 0 {
			t.Errorf("both lists share the options of %s", one[i].Name)
		}
	}
}
