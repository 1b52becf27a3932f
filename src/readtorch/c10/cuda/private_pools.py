"""Private pools: memory kept apart, for `torch.cuda.MemPool` and for captured graphs.

Note [ Private pools ]
A captured graph remembers addresses and uses them whenever it is replayed, so nobody else may get that
memory; other programs want some of their memory in segments of its own. Both announce a pool: from then on
requests (of the streams that they name) are served from it, and blocks go back to where they came from.
Users of a pool are counted. While there is one, its free segments are kept whatever happens; when the last
has gone they are given back with the rest of the cache, and the pool disappears when its last segment has.

In PyTorch: `createOrIncrefPool`, `beginAllocateToPool` … in `c10/cuda/CUDACachingAllocator.cpp`. Explained
in the chapter "The caching allocator".
"""
from .block import PrivatePool
from .segments import Segments


class PrivatePools(Segments):
    """The storey that knows private pools. A pool's id is a pair of ints; (0, 0) is none."""

    def create_or_incref_pool(self, pool_id):
        """One more user of the pool; the first one makes it."""
        with self.lock:
            pool = self.private_pools.get(pool_id)
            if pool is None:
                self.private_pools[pool_id] = PrivatePool(pool_id, self.stats)
            elif pool.use_count == 0:
                raise RuntimeError("a private pool that its users have left cannot be used again")
            else:
                pool.use_count += 1

    def release_pool(self, pool_id):
        """One user less."""
        with self.lock:
            pool = self._pool(pool_id)
            if pool.use_count == 0:
                raise RuntimeError("a private pool was released more often than it was used")
            pool.use_count -= 1
            if pool.use_count == 0:
                self.freeable_pools[pool_id] = pool

    def pool_use_count(self, pool_id):
        with self.lock:
            return self._pool(pool_id).use_count

    def begin_allocate_to_pool(self, pool_id, wants):
        """From now on, requests on streams for which `wants(stream)` is true go to the pool, which gets a
        user."""
        with self.lock:
            self.create_or_incref_pool(pool_id)
            if any(redirected == pool_id for redirected, _ in self.redirections):
                raise RuntimeError("beginAllocateToPool: already recording to mempool_id")
            self.redirections.append((pool_id, wants))

    def end_allocate_to_pool(self, pool_id):
        """Requests go to the common pools again. The user has to be released besides."""
        with self.lock:
            for i, (redirected, _) in enumerate(self.redirections):
                if redirected == pool_id:
                    del self.redirections[i]
                    return
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")

    def set_use_on_oom(self, pool_id, use):
        """Whether the pool's free blocks may serve requests that nothing else can serve."""
        with self.lock:
            if use and pool_id not in self.use_on_oom_pools:
                self.use_on_oom_pools.append(pool_id)
            elif not use and pool_id in self.use_on_oom_pools:
                self.use_on_oom_pools.remove(pool_id)

    def set_no_split(self, pool_id):
        """The pool's segments are handed out whole."""
        with self.lock:
            self.no_split_pools.add(pool_id)

    def get_block_from_helping_pool(self, request):
        """Serve a request from a private pool that helps out (`set_use_on_oom`), if one has a block that
        fits."""
        if request.pool.owner is not None:
            return False
        for pool_id in self.use_on_oom_pools:
            private = self.private_pools.get(pool_id)
            if private is None:
                continue
            common, expandable = request.pool, request.expandable
            request.pool = private.small_blocks if common.is_small else private.large_blocks
            request.expandable = False
            if self.get_free_block(request):
                request.source = "private pool"
                return True
            request.pool, request.expandable = common, expandable
        return False

    def _pool(self, pool_id):
        try:
            return self.private_pools[pool_id]
        except KeyError:
            raise RuntimeError(f"there is no private pool {pool_id}") from None
