# Copyright The Setpoint Authors.
# SPDX-License-Identifier: Apache-2.0

# The binaries that are built from the source of Kubernetes, all from the module
# graph of controlplane/, so that they are of one version and share one cache.

# Kubernetes' own build stamps its version with the linker, and so does this one:
# without it, servers and clients call themselves v0.0.0-master.
KUBERNETES_VERSION := $(shell sed -n 's/^[[:space:]]*k8s\.io\/kubernetes \(v[^ ]*\).*/\1/p' controlplane/go.mod)
KUBERNETES_MAJOR   := $(patsubst v%,%,$(word 1,$(subst ., ,$(KUBERNETES_VERSION))))
KUBERNETES_MINOR   := $(word 2,$(subst ., ,$(KUBERNETES_VERSION)))

# Both copies of the variables are read: clients send the second as user agent.
# Without symbol tables (-s -w) linking is faster and the files a third smaller;
# stack traces and profiles do not need them.
KUBERNETES_LDFLAGS := -s -w $(foreach package,k8s.io/component-base/version k8s.io/client-go/pkg/version, \
	-X $(package).gitVersion=$(KUBERNETES_VERSION) \
	-X $(package).gitMajor=$(KUBERNETES_MAJOR) \
	-X $(package).gitMinor=$(KUBERNETES_MINOR) \
	-X $(package).gitTreeState=clean)

# Said only where it can be true: a binary that is there means a cache that is warm.
first = $(if $(wildcard $(BIN)/setpoint-controlplane),,-n 'first time: about 8 minutes on 2 cores, seconds from then on')

# kubernetes builds, in controlplane/, the command with the import path $(1).
kubernetes = @cd controlplane && $(STEP) $(first) 'building bin/$@' \
	$(BUILD) -ldflags '$(KUBERNETES_LDFLAGS) $(2)' -o $(BIN)/$@ $(1)

# Not linked anew for every change of a file elsewhere, only for every commit.
CONTROLPLANE_VERSION = $(patsubst %-dirty,%,$(VERSION))

.PHONY: setpoint-controlplane
setpoint-controlplane: ## build bin/setpoint-controlplane: API server, etcd, scheduler and nodes
	$(call kubernetes,./cmd/setpoint-controlplane,-X main.version=$(CONTROLPLANE_VERSION))

.PHONY: kubectl
kubectl: ## build bin/kubectl: the real one, for who has none
	$(call kubernetes,k8s.io/kubernetes/cmd/kubectl)

.PHONY: kube-controller-manager
kube-controller-manager: ## build bin/kube-controller-manager: the peer that bench measures against
	$(call kubernetes,k8s.io/kubernetes/cmd/kube-controller-manager)

# The binaries without the others that setpoint-controlplane has.
stock = @cd controlplane && $(STEP) 'building bin/stock/$(1)' $(BUILD) -ldflags '$(KUBERNETES_LDFLAGS)' -o $(BIN)/stock/$(1) $(2)

.PHONY: stock
stock: ## build bin/stock: kube-apiserver and etcd as they are, which bench compares those of setpoint assets with
	$(call stock,kube-apiserver,k8s.io/kubernetes/cmd/kube-apiserver)
	$(call stock,etcd,go.etcd.io/etcd/server/v3)
