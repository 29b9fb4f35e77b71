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
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

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
	for _, entry := range Known() {
		if !entry.OffByDefault {
			all = append(all, entry.Name)
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
			chosen, err := Select(strings.Split(test.choice, ","))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, entry := range chosen {
				names = append(names, entry.Name)
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
		_, err := Select([]string{"*", test.name})
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
		if _, err := Select(choice); !errors.Is(err, ErrNothingSelected) {
			t.Errorf("%q: %v", choice, err)
		}
	}
}

// everything are options with which every controller can be made.
func everything(t *testing.T) Options {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true}
	if der, err = x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return Options{
		ServiceAccountKey:  keyPEM,
		RootCA:             caPEM,
		SigningAuthorities: csrsigning.ForAll(func() (csrsigning.Authority, error) { return csrsigning.ParseAuthority(caPEM, keyPEM) }),
	}
}

func TestAControllerThatLacksWhatItNeedsSaysSo(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range Known() {
		_, err := entry.New(mgr, Options{})
		lacks, ok := errors.AsType[*NotConfiguredError](err)
		if err != nil && (!ok || lacks.Controller != entry.Name || lacks.Lacks == "") {
			t.Errorf("%s without options: %v, want what is missing", entry.Name, err)
		}
	}
}

// oneKey are the controllers that have no use for workers.
var oneKey = []string{"bootstrap-signer-controller", "legacy-serviceaccount-token-cleaner-controller"}

func TestEveryControllerCanBeMadeAndHasTheNameOfItsEntry(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	options := everything(t)
	for _, entry := range Known() {
		c, err := entry.New(mgr, options)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name() != entry.Name {
			t.Errorf("the entry %s makes %s", entry.Name, c.Name())
		}
		if entry.Summary == "" {
			t.Errorf("%s has no summary", entry.Name)
		}
		few := options
		few.Workers = map[string]int{entry.Name: -1}
		if _, err := entry.New(mgr, few); err == nil && !slices.Contains(oneKey, entry.Name) {
			t.Errorf("%s can be made with -1 workers", entry.Name)
		}
	}
}

func TestNoNameIsTwoControllers(t *testing.T) {
	seen := map[string]string{}
	for _, entry := range Known() {
		for _, name := range []string{entry.Name, entry.Alias} {
			// A controller that is younger than short names has none.
			if other, twice := seen[name]; twice && other != entry.Name {
				t.Errorf("%s is %s and %s", name, other, entry.Name)
			}
			seen[name] = entry.Name
		}
	}
}
