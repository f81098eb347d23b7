(** Nor does the theorem ask for too much: without one of the contracts, all others kept, clients see what the specification
    does not allow. Each history below is one that no trace has. *)
From Tansy Require Export Example.

Notation trace := (trace zero allowed stable flush shed).

(** The newest state is v, and calls 1 and 2 are where s1 and s2 say, all others nowhere. *)
Definition stands (v : nat) (s1 s2 : status op nat) (m : machine) : Prop :=
  last (states m) = Some v ∧ calls m 1 = s1 ∧ calls m 2 = s2 ∧ ∀ i, i ≠ 1 → i ≠ 2 → calls m i = Idle.
Ltac unset := unfold set in *; repeat case_decide; simplify_eq; try done; try lia.
(** Which call a step is of: 1, 2, or none that is there. *)
Ltac which i :=
  destruct (decide (i = 1)) as [->|?]; [|destruct (decide (i = 2)) as [->|?]];
  repeat match goal with H : ∀ i, i ≠ 1 → i ≠ 2 → ?cs i = Idle, H1 : ?i ≠ 1, H2 : ?i ≠ 2 |- _ =>
    lazymatch goal with E : cs i = Idle |- _ => fail | _ => pose proof (H i H1 H2) end end.
Ltac fits := unfold stands; simpl; split_and!; try done; try (intros j ? ?); unset; rewrite ?last_snoc; auto.
Ltac merge := repeat match goal with H : ?f ?x = _, H' : ?f ?x = _ |- _ => rewrite H in H'; simplify_eq end.
Ltac machine_step Hs :=
  inversion Hs as [vs k cs i o Hi|vs k cs i o v r v' Hi Hv Ha|vs k cs i o v r Hi Hv Ha|vs k cs v v' Hv Hd|vs k cs k'
    Hk|vs k cs i r b Hi Hb|vs k cs i Hi|vs k cs n v Hn Hv];
  subst; unfold stands in *; simpl in *; destruct_and?; simplify_eq; try which i; merge; simpl in *; destruct_and?; simplify_eq.

(** *** Without real time: a read may find what was there at some time before *)
Definition Past (L : its_life) : Prop := ∀ t i l r, at_ L t (Closes i l r) → ∃ st, st ∈ vs L t ∧ Finds keys cell l st.
Definition stale : its_life :=
  let acts := [Comes 1 (Put 1 true); Closes 1 w1 0; Points 1 1; Works; Answers 1 0 1; Comes 2 Get; Closes 2 [OpRead 0 0] 0; Answers 2 0 1] in
  a_life acts (λ t, if decide (t ≤ 2) then [0] else [0; 1]) (λ t, if decide (t ≤ 3) then 0 else 1)
    (λ t, if decide (t ≤ 2) then ∅ else {[1 := w1]}) (λ t, if decide (t ≤ 2) then ∅ else {[0 := 1]}).
Definition stale_read : list (event op nat) := [Call 1 (Put 1 true); Reply 1 0; Call 2 Get; Reply 2 0].

Lemma stale_read_is_none : ¬ ∃ m, trace stale_read m.
Proof.
  intros [m Hm].
  apply (staged zero allowed stable flush shed stale_read (λ k m, match k with
    | 0 => stands 0 Idle Idle m
    | 1 => stands 0 (Waiting (Put 1 true)) Idle m ∨ ∃ b, stands 1 (Done 0 b) Idle m
    | 2 => stands 1 Idle Idle m
    | 3 => stands 1 Idle (Waiting Get) m ∨ ∃ b, stands 1 Idle (Done 1 b) m
    | _ => False
    end)) in Hm; [done|by intros v ->|..].
  - intros k m1 m2 HA Hs. destruct k as [|[|[|[|k]]]]; try done; try destruct HA as [HA|[b0 HA]]; machine_step Hs.
    all: first [fits; fail|left; fits; fail|right; eexists; fits; fail].
  - intros k e m1 m2 He HA Hs. destruct k as [|[|[|[|k]]]]; try done; simpl in He; simplify_eq; try destruct HA as [HA|[b0 HA]]; machine_step Hs.
    all: first [fits; fail|left; fits; fail|right; eexists; fits; fail].
Qed.
Theorem without_real_time :
  Opens stale 0 ∧ Runner body own ok stale ∧ Mono stale ∧ Whole keys cell stale ∧ Commits stale ∧ Past stale ∧
    Waits stable flush stale ∧ Seen stable stale ∧
  ¬ ∃ m, trace (seen stale (ending stale)) m.
Proof.
  split_and!; [done| | | | | | | |exact stale_read_is_none].
  - split; [done| |by intros t a i; apply others|by intros t l r n Ha; at_each Ha t].
    intros t a i Ha Hi. at_each Ha t; simpl in Hi; simplify_eq; simpl; repeat constructor; vm_compute; congruence.
  - intros t Ht. unfold ending in Ht; simpl in *. repeat case_decide; try lia; split_and!; try done; try lia.
    all: try (by exists []); try (by exists [1]). apply map_empty_subseteq.
  - intros t _. simpl. repeat case_decide; [apply serial_none|apply serial_one].
  - split.
    + intros t i n o l r p Ha Hp. at_each Ha t; vm_compute in Hp; simplify_eq; by split_and!.
    + intros t l r n Ha. by at_each Ha t.
    + intros t n Ht Hn Hs. unfold ending in Ht; simpl in *. repeat case_decide; try lia; try (rewrite Hn in Hs; by destruct Hs).
      assert (t = 2) as -> by lia. left. exists 1. destruct Hs as [l [<- _]%lookup_singleton_Some]. done.
  - intros t i l r Ha. at_each Ha t; exists 0; (split; [set_solver|]); intros [|j] k o Hj; simpl in Hj; simplify_eq; try (by destruct j).
    split; [set_solver|done].
  - split.
    + intros t i r need Ha. at_each Ha t; simpl; lia.
    + intros t i r need o l p n Ha Hp Hs. at_each Ha t; vm_compute in Hp; simplify_eq; done || lia.
    + intros t i r need o l p Ha Hp Hf. at_each Ha t; vm_compute in Hp; simplify_eq.
    + intros t Ht. simpl. repeat case_decide; simpl; lia.
  - split.
    + intros t i n o l r p k Ha Hp Hs Hk. at_each Ha t; vm_compute in Hp; simplify_eq; try done.
      destruct Hk as [x Hk]. unfold Writes in Hk. simpl in Hk.
      apply lookup_insert_Some in Hk as [[<- _]|[_ Hk]]; [by exists 1|by rewrite lookup_empty in Hk].
    + intros t k n _ Hn. simpl in *. repeat case_decide; simplify_map_eq; try lia; eauto.
    + intros s t i l r r' need k n Hs Ht _ Htouch Hn. simpl in Hn. case_decide; [by rewrite lookup_empty in Hn|].
      apply lookup_singleton_Some in Hn as [<- <-]. at_each Ht t; lia.
Qed.

(** *** Without the wait: a stable write may be answered before it is durable *)
Definition hasty : its_life :=
  let acts := [Comes 1 (Put 1 true); Closes 1 w1 0; Points 1 1; Answers 1 0 0] in
  a_life acts (λ t, if decide (t ≤ 2) then [0] else [0; 1]) (λ t, 0) (λ t, if decide (t ≤ 2) then ∅ else {[1 := w1]})
    (λ t, if decide (t ≤ 2) then ∅ else {[0 := 1]}).
(** Then a crash; and it is gone. *)
Definition later : its_life :=
  a_life [Comes 2 Get; Closes 2 [OpRead 0 0] 0; Answers 2 0 0] (λ t, [0]) (λ t, 0) (λ t, ∅) (λ t, ∅).
Definition lost_write : list (event op nat) := [Call 1 (Put 1 true); Reply 1 0; Crash; Call 2 Get; Reply 2 0].

(** All states from number b on are 1. *)
Definition since (b : nat) (m : machine (V:=nat) (Op:=op) (Res:=nat)) : Prop := ∀ n v, b ≤ n → states m !! n = Some v →
  v = 1.
Lemma since_more vs k cs k' cs' b : since b (Machine vs k cs) → since b (Machine (vs ++ [1]) k' cs').
Proof.
  intros H n v Hn [Hv|[_ Hv]]%lookup_app_Some; [by apply (H n)|]. by apply list_lookup_singleton_Some in Hv as [_ <-].
Qed.
Lemma since_put vs k cs : since (length vs) (Machine (vs ++ [1]) k cs).
Proof.
  intros n v Hn [Hv|[_ Hv]]%lookup_app_Some; [apply lookup_lt_Some in Hv; simpl in *; lia|].
  by apply list_lookup_singleton_Some in Hv as [_ <-].
Qed.
Lemma since_later vs k cs k' cs' b b' : b ≤ b' → since b (Machine vs k cs) → since b' (Machine vs k' cs').
Proof. intros Hb H n v Hn. apply H. simpl in *. lia. Qed.
Lemma lost_write_is_none : ¬ ∃ m, trace lost_write m.
Proof.
  intros [m Hm].
  apply (staged zero allowed stable flush shed lost_write (λ k m, match k with
    | 0 => stands 0 Idle Idle m
    | 1 => stands 0 (Waiting (Put 1 true)) Idle m ∨ ∃ b, since b m ∧ stands 1 (Done 0 b) Idle m
    | 2 => since (kept m) m ∧ stands 1 Idle Idle m
    | 3 => stands 1 Idle Idle m
    | 4 => stands 1 Idle (Waiting Get) m ∨ ∃ b, stands 1 Idle (Done 1 b) m
    | _ => False
    end)) in Hm; [done|by intros v ->|..].
  - intros k m1 m2 HA Hs. destruct k as [|[|[|[|[|k]]]]]; try done; try destruct HA as [HA|HA]; try destruct HA as [b0 HA]; machine_step Hs; try lia.
    all: try (first [fits; lia|left; fits; fail|right; eexists; fits; fail]).
    all: unfold shed in *; simplify_eq.
    all: try (split; [eauto using since_more, since_later with lia|fits; fail]).
    all: try (right; eexists; split; [eauto using since_more, since_later, since_put with lia|fits; fail]).
    right. exists b0. split; [by eapply since_more|fits].
  - intros k e m1 m2 He HA Hs. destruct k as [|[|[|[|[|k]]]]]; try done; simpl in He; simplify_eq; try destruct HA as [HA|HA]; try destruct HA as [b0 HA]; machine_step Hs; try lia.
    all: try (first [fits; lia|left; fits; fail|right; eexists; fits; fail]).
    all: unfold shed in *; simplify_eq.
    all: try (split; [eauto using since_more, since_later with lia|fits; fail]).
Qed.

Lemma later_keeps_the_contracts : Contracts keys cell body own ok stable flush later.
Proof.
  split.
  - split; [done| |by intros t a i; apply others|by intros t l r n Ha; at_each Ha t].
    intros t a i Ha Hi. at_each Ha t; simpl in Hi; simplify_eq; simpl; repeat constructor; vm_compute; congruence.
  - intros t _. simpl. split_and!; [by exists []|done|done].
  - intros t _. apply serial_none.
  - split; [intros t i n o l r p Ha; by at_each Ha t|intros t l r n Ha; by at_each Ha t|].
    intros t n _ _ [x Hx]. simpl in Hx. by rewrite lookup_empty in Hx.
  - intros t i l r Ha. at_each Ha t; exists 0; (split; [done|]); intros [|j] k o Hj; simpl in Hj; simplify_eq; try (by destruct j).
    split; [set_solver|done].
  - split; [intros t i r need Ha; at_each Ha t; simpl; lia| | |intros t _; simpl; lia].
    + intros t i r need o l p n Ha Hp. at_each Ha t; vm_compute in Hp; simplify_eq.
    + intros t i r need o l p Ha Hp Hf. at_each Ha t; vm_compute in Hp; simplify_eq.
  - split; [intros t i n o l r p k Ha; by at_each Ha t| |].
    + intros t k n _ Hn. simpl in Hn. by rewrite lookup_empty in Hn.
    + intros s t i l r r' need k n _ _ _ _ Hn. simpl in Hn. by rewrite lookup_empty in Hn.
Qed.
Theorem without_waiting :
  Opens hasty 0 ∧ Runner body own ok hasty ∧ Mono hasty ∧ Whole keys cell hasty ∧ Commits hasty ∧
    Current keys cell hasty ∧ Seen stable hasty ∧
  (∀ t i r need, at_ hasty t (Answers i r need) → need ≤ lb hasty t) ∧
  Recovers keys cell free hasty 0 0 ∧ Opens later 0 ∧ Contracts keys cell body own ok stable flush later ∧
  ¬ ∃ m, trace (seen hasty (ending hasty) ++ [Crash] ++ seen later (ending later)) m.
Proof.
  split; [done|]. split; [|split; [|split; [|split; [|split; [|split; [|split; [|split; [|split; [done|split; [|exact lost_write_is_none]]]]]]]]]].
  - split; [done| |by intros t a i; apply others|by intros t l r n Ha; at_each Ha t].
    intros t a i Ha Hi. at_each Ha t; simpl in Hi; simplify_eq; simpl; repeat constructor; vm_compute; congruence.
  - intros t Ht. unfold ending in Ht; simpl in *. repeat case_decide; try lia; split_and!; try done; try lia.
    all: try (by exists []); try (by exists [1]). apply map_empty_subseteq.
  - intros t _. simpl. repeat case_decide; [apply serial_none|apply serial_one].
  - split.
    + intros t i n o l r p Ha Hp. at_each Ha t; vm_compute in Hp; simplify_eq; by split_and!.
    + intros t l r n Ha. by at_each Ha t.
    + intros t n Ht Hn Hs. unfold ending in Ht; simpl in *. repeat case_decide; try lia; try (rewrite Hn in Hs; by destruct Hs).
      assert (t = 2) as -> by lia. left. exists 1. destruct Hs as [l [<- _]%lookup_singleton_Some]. done.
  - intros t i l r Ha. at_each Ha t; exists 0; (split; [done|]); intros [|j] k o Hj; simpl in Hj; simplify_eq; by destruct j.
  - split.
    + intros t i n o l r p k Ha Hp Hs Hk. at_each Ha t; vm_compute in Hp; simplify_eq; try done.
      destruct Hk as [x Hk]. unfold Writes in Hk. simpl in Hk.
      apply lookup_insert_Some in Hk as [[<- _]|[_ Hk]]; [by exists 1|by rewrite lookup_empty in Hk].
    + intros t k n _ Hn. simpl in *. repeat case_decide; simplify_map_eq; try lia; eauto.
    + intros s t i l r r' need k n Hs Ht _ Htouch Hn. by at_each Hs s.
  - intros t i r need Ha. at_each Ha t; simpl; lia.
  - split; [done|]. exists 0, 0. split; [|by intros k ->%elem_of_singleton].
    split; [done|]. split; [done|]. split; [by intros [|i] k o|]. intros k _. done.
  - apply later_keeps_the_contracts.
Qed.
